//! Shapes that the JSON of the operator's API has many times: lists, and names of variants.

/// Declares a page of a list.
macro_rules! page {
    ($(#[$about:meta])* $name:ident of $item:ident $(#[$next:meta])?) => {
        $(#[$about])*
        #[derive(Debug, Serialize, ToSchema)]
        pub(crate) struct $name {
            pub(crate) items: Vec<$item>,
            /// The value of `before` for the next page; null on the last page.
            $(#[$next])?
            pub(crate) next: Option<String>,
        }
    };
}
pub(crate) use page;

/// Declares a list that has one page only.
macro_rules! whole {
    ($(#[$about:meta])* $name:ident of $item:ident) => {
        $(#[$about])*
        #[derive(Debug, Serialize, ToSchema)]
        pub(crate) struct $name {
            items: Vec<$item>,
            /// Always null: there is only one page.
            #[schema(value_type = Option<String>)]
            next: Option<&'static str>,
        }

        impl FromIterator<$item> for $name {
            fn from_iter<I: IntoIterator<Item = $item>>(items: I) -> Self {
                Self { items: items.into_iter().collect(), next: None }
            }
        }
    };
}
pub(crate) use whole;

/// Declares the names that JSON has for the variants of an enum of the core.
macro_rules! names {
    ($(#[$about:meta])* $name:ident of $core:ident { $($(#[$what:meta])* $variant:ident),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum $name {
            $($(#[$what])* $variant,)*
        }

        impl From<$core> for $name {
            fn from(known: $core) -> Self {
                match known {
                    $($core::$variant => Self::$variant,)*
                }
            }
        }

        impl From<$name> for $core {
            fn from(named: $name) -> Self {
                match named {
                    $($name::$variant => Self::$variant,)*
                }
            }
        }
    };
}
pub(crate) use names;
