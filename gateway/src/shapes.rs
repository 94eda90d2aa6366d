//! Shapes that the JSON of the operator's API has many times: items, lists, what is asked for, and names of variants.

/// Declares an item: what each of its fields means, its type, and what it is read from. Values that several fields are read from
/// stand before `with`.
macro_rules! item {
    (
        $(#[$about:meta])* $vis:vis $name:ident of ($($from:ident: $source:ty),*) { $($before:tt)* } with {
            $($(#[$attribute:meta])* $field:ident: $type:ty = $value:expr,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Serialize, ToSchema)]
        $vis struct $name {
            $($(#[$attribute])* $vis $field: $type,)*
        }

        impl $name {
            $vis fn of($($from: $source),*) -> Self {
                $($before)*
                Self { $($field: $value,)* }
            }
        }
    };
    ($(#[$about:meta])* $vis:vis $name:ident of ($($from:ident: $source:ty),*) { $($fields:tt)* }) => {
        $crate::shapes::item! { $(#[$about])* $vis $name of ($($from: $source),*) {} with { $($fields)* } }
    };
}
pub(crate) use item;

/// Declares what a request may ask for in its query.
macro_rules! query {
    ($(#[$about:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Deserialize, IntoParams)]
        #[into_params(parameter_in = Query)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$attribute])* $field: $type,)*
        }
    };
}
pub(crate) use query;

/// Declares the body of a request.
macro_rules! body {
    ($(#[$about:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$attribute])* pub(super) $field: $type,)*
        }
    };
}
pub(crate) use body;

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
