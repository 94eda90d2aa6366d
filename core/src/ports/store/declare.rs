//! How the trait of a noun is declared.

/// Declares the trait of a noun. `read fn name(of: A) -> T` stands for `async fn name(&self, of: A) -> Result<T, StoreError>`, and
/// so does `write fn`, which has changed nothing if it fails, or does not know.
///
/// For tests it also passes the calls on through a [layer](layered::Layered), and implements the trait for the
/// [store that holds nothing](layered::NullStore).
macro_rules! store_trait {
    (
        $(#[$about:meta])*
        pub trait $noun:ident $(: $above:ident)? {
            $(
                $(#[$doc:meta])*
                $kind:ident fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $found:ty;
            )*
        }
    ) => {
        $(#[$about])*
        #[async_trait::async_trait]
        pub trait $noun: $($above +)? Send + Sync + 'static {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                #[doc = store_trait!(@errors $kind)]
                async fn $name(&self, $($argument: $type),*) -> Result<$found, StoreError>;
            )*
        }

        #[cfg(feature = "testing")]
        #[async_trait::async_trait]
        impl<L: $crate::ports::store::layered::Layer> $noun for $crate::ports::store::layered::Layered<L> {
            $(
                async fn $name(&self, $($argument: $type),*) -> Result<$found, StoreError> {
                    let layer = &self.layer;
                    let pass = store_trait!(@before $kind layer $name);
                    layer.finish(pass, self.store.$name($($argument),*)).await
                }
            )*
        }

        #[cfg(feature = "testing")]
        #[async_trait::async_trait]
        impl $noun for $crate::ports::store::layered::NullStore {
            $(
                async fn $name(&self, $($argument: $type),*) -> Result<$found, StoreError> {
                    let _ = ($(&$argument,)*);
                    Ok(<$found>::default())
                }
            )*
        }
    };
    (@errors read) => { "When the store cannot be read." };
    (@errors write) => { "If so, nothing was changed, unless it is [`StoreError::Unknown`]." };
    (@before read $layer:ident $name:ident) => { $layer.before_read(stringify!($name)).await };
    (@before write $layer:ident $name:ident) => { $layer.before_write(stringify!($name)).await? };
}
