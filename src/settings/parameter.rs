//! What PostgreSQL is told of a parameter, together with its value.

use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, GucValue, PostgresGucEnum, pg_sys};
use std::ffi::{CStr, CString};
use std::ops::RangeInclusive;

/// The value of an integer parameter that is not set.
pub const UNSET: i32 = -1;

/// A parameter.
pub struct Parameter<T: ParameterType> {
    /// Its name, with the prefix.
    pub name: &'static CStr,
    /// What it is, in one sentence.
    pub short: &'static CStr,
    /// What else `pg_settings` says of it.
    pub long: &'static CStr,
    /// Its value, made with the default.
    pub value: GucSetting<T>,
    /// Its lowest and its highest value, where it is a number.
    pub limits: T::Limits,
    /// Its unit, and who may see it.
    pub flags: GucFlags,
    /// When it can be set.
    pub context: Context,
    /// Its hooks.
    pub hooks: Hooks<T>,
}

/// The hooks of a parameter. Each is guarded by `pg_guard` where it could panic.
pub struct Hooks<T: ParameterType> {
    /// Refuses values.
    pub check: T::Check,
    /// Is told of a new value.
    pub assign: T::Assign,
    /// Writes the value.
    pub show: pg_sys::GucShowHook,
}

impl<T: ParameterType> Parameter<T> {
    /// The value in this process.
    #[inline]
    pub fn get(&self) -> T {
        self.value.get()
    }
}

impl Parameter<Option<CString>> {
    /// The value in this process, as text.
    pub fn text(&self) -> String {
        self.get().map_or_else(String::new, |text| text.to_string_lossy().into_owned())
    }
}

/// When a parameter can be set.
#[derive(Clone, Copy)]
pub enum Context {
    /// At the start of the server. PostgreSQL lets nobody define such a parameter once the server runs: a session that loads the library
    /// later reads the same lines of the configuration file, and it reads them once.
    Start,
    /// By a reload of the configuration.
    Reload,
    /// By anybody, at any time.
    Session,
}

impl Context {
    fn of(self, preloading: bool) -> GucContext {
        match self {
            Self::Start if preloading => GucContext::Postmaster,
            Self::Start | Self::Reload => GucContext::Sighup,
            Self::Session => GucContext::Userset,
        }
    }
}

/// The type of a parameter's values.
pub trait ParameterType: GucValue {
    /// The lowest and the highest value, where there are such.
    type Limits;
    /// A hook that refuses values, or none.
    type Check;
    /// A hook that is told of a new value, or none.
    type Assign;
}

/// What can be defined: a parameter of any type.
pub trait Define: Sync {
    /// Defines it. PostgreSQL gives it the value of the configuration, which its check may refuse.
    fn define(&'static self, preloading: bool);
}

/// The types, and for each: by which of pgrx's functions a parameter is defined, with the ends of its limits in parentheses; the type of its
/// limits; and the types of its hooks.
macro_rules! parameter_types {
    ($($type:ty: $define:ident($($end:ident),*), $limits:ty, $check:ident, $assign:ident;)*) => {$(
        impl ParameterType for $type {
            type Limits = $limits;
            type Check = pg_sys::$check;
            type Assign = pg_sys::$assign;
        }

        impl Hooks<$type> {
            /// Without hooks.
            pub const NONE: Self = Self { check: None, assign: None, show: None };
        }

        impl Define for Parameter<$type> {
            fn define(&'static self, preloading: bool) {
                let (context, Hooks { check, assign, show }) = (self.context.of(preloading), &self.hooks);
                // SAFETY: the hooks are guarded, and have the signatures that PostgreSQL documents for them.
                unsafe {
                    GucRegistry::$define(
                        self.name,
                        self.short,
                        self.long,
                        &self.value,
                        $(*self.limits.$end(),)*
                        context,
                        self.flags,
                        *check,
                        *assign,
                        *show,
                    );
                }
            }
        }
    )*};
}

parameter_types! {
    bool: define_bool_guc_with_hooks(), (), GucBoolCheckHook, GucBoolAssignHook;
    i32: define_int_guc_with_hooks(start, end), RangeInclusive<i32>, GucIntCheckHook, GucIntAssignHook;
    f64: define_float_guc_with_hooks(start, end), RangeInclusive<f64>, GucRealCheckHook, GucRealAssignHook;
    ClockSource: define_enum_guc_with_hooks(), (), GucEnumCheckHook, GucEnumAssignHook;
    Option<CString>: define_string_guc_with_hooks(), (), GucStringCheckHook, GucStringAssignHook;
}

/// How a session finds out that a tick of the clock is over.
#[derive(Clone, Copy, Debug, PostgresGucEnum)]
pub enum ClockSource {
    /// By the processor's counter where that can be used ([`crate::postgres::time::counter::usable`]), else by the clock.
    #[name = c"auto"]
    Auto,
    /// By the clock, for each claim.
    #[name = c"system"]
    System,
}
