//! Values of PostgreSQL's types, and its zones of time, for what a condition says of a time: [`snowflake_core::inverse`].

use super::given::Given;
use pg_sys::{Datum, FunctionCallInfo, Oid};
use pgrx::AnyArray;
use pgrx::prelude::*;
use snowflake_core::inverse::{Kind, Value, Zone, Zones};
use std::ffi::{CStr, CString};

/// What is read: of an array, its elements. What is of no type that a time is made to, or compared with, is unknown.
///
/// # Safety
/// A value of this type, or NULL.
pub unsafe fn read(datum: Datum, is_null: bool, of_type: Oid) -> Vec<Value> {
    if is_null {
        return vec![Value::Null];
    }
    let whole = |number: i64| Value::Of(Kind::Days, number);
    // SAFETY: a value of this type that is not NULL; what is read from it is copied.
    unsafe {
        vec![match of_type {
            pg_sys::TIMESTAMPTZOID => Value::Of(Kind::Instant, datum.value() as i64),
            pg_sys::TIMESTAMPOID => Value::Of(Kind::Local, datum.value() as i64),
            pg_sys::DATEOID => Value::Of(
                Kind::Date,
                match datum.value() as i32 {
                    i32::MIN => i64::MIN,
                    i32::MAX => i64::MAX,
                    date => date.into(),
                },
            ),
            pg_sys::INT2OID => whole((datum.value() as i16).into()),
            pg_sys::INT4OID => whole((datum.value() as i32).into()),
            pg_sys::INT8OID => whole(datum.value() as i64),
            pg_sys::FLOAT4OID => f32::from_datum(datum, false).map_or(Value::Unknown, |it| number(it.into())),
            pg_sys::FLOAT8OID => f64::from_datum(datum, false).map_or(Value::Unknown, number),
            pg_sys::NUMERICOID => AnyNumeric::from_datum(datum, false)
                .map_or(Value::Unknown, |number| Value::decimal(&number.to_string())),
            pg_sys::INTERVALOID => {
                let interval = datum.cast_mut_ptr::<pg_sys::Interval>().read();
                Value::Interval { months: interval.month, days: interval.day, micros: interval.time }
            }
            pg_sys::TEXTOID => {
                Given::from_datum(datum, false).map_or(Value::Unknown, |text| Value::Text(text.read().into_owned()))
            }
            _ if pg_sys::type_is_range(of_type) => {
                // The cache holds what is known of the type for good. Values of ranges have this function.
                let cache = pg_sys::lookup_type_cache(of_type, pg_sys::TYPECACHE_RANGE_INFO as i32);
                let (mut low, mut high) = (pg_sys::RangeBound::default(), pg_sys::RangeBound::default());
                let mut is_empty = false;
                let range = pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast();
                pg_sys::range_deserialize(cache, range, &raw mut low, &raw mut high, &raw mut is_empty);
                // Its bounds are no values.
                if is_empty {
                    return vec![Value::Null];
                }
                let element = (*(*cache).rngelemtype).type_id;
                let bounds = [low, high].map(|bound| match bound.infinite {
                    true => Some((None, false)),
                    false => match read(bound.val, false, element)[..] {
                        [Value::Of(kind, value)] => Some((Some((kind, value)), bound.inclusive)),
                        _ => None,
                    },
                });
                match bounds {
                    [Some(low), Some(high)] => Value::between(low, high),
                    _ => Value::Unknown,
                }
            }
            _ => match pg_sys::get_base_element_type(of_type) {
                pg_sys::InvalidOid => Value::Unknown,
                element => {
                    let all = elements(datum, element).into_iter();
                    return all.flat_map(|(one, null)| read(one, null, element)).collect();
                }
            },
        }]
    }
}

/// The arguments of a call of a function that is running, each as [`read`] has it.
pub fn arguments(call: FunctionCallInfo) -> Vec<Vec<Value>> {
    // SAFETY: what PostgreSQL calls a function with: so many arguments, of the types that the expression says.
    unsafe {
        let count = (*call).nargs as usize;
        let of_type = |at| pg_sys::get_fn_expr_argtype((*call).flinfo, at as i32);
        let all = (*call).args.as_slice(count).iter().enumerate();
        all.map(|(at, one)| read(one.value, one.isnull, of_type(at))).collect()
    }
}

fn number(number: f64) -> Value {
    Value::decimal(&number.to_string())
}

/// The elements of an array that is not NULL, and which of them are.
///
/// # Safety
/// An array of elements of this type.
pub unsafe fn elements(array: Datum, of_type: Oid) -> Vec<(Datum, bool)> {
    let (mut length, mut by_value, mut align) = (0, false, 0);
    let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
    // SAFETY: a look-up of the type in the catalog, and then as the caller promises; the function makes two arrays of so many elements.
    unsafe {
        pg_sys::get_typlenbyvalalign(of_type, &raw mut length, &raw mut by_value, &raw mut align);
        let array = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast();
        let (values, nulls, count) = (&raw mut values, &raw mut nulls, &raw mut count);
        pg_sys::deconstruct_array(array, of_type, length.into(), by_value, align, values, nulls, count);
        (0..*count as usize).map(|at| (*(*values).add(at), *(*nulls).add(at))).collect()
    }
}

/// An array of values of a type, in PostgreSQL's memory.
pub fn array_of(of_type: Oid, mut values: Vec<Datum>) -> Datum {
    let (mut length, mut by_value, mut align) = (0, false, 0);
    // SAFETY: a look-up of the type in the catalog; so many values of it, which are copied.
    unsafe {
        pg_sys::get_typlenbyvalalign(of_type, &raw mut length, &raw mut by_value, &raw mut align);
        if values.is_empty() || !by_value || usize::from(length.unsigned_abs()) != size_of::<Datum>() {
            let count = values.len() as i32;
            return pg_sys::construct_array(values.as_mut_ptr(), count, of_type, length.into(), by_value, align).into();
        }
        // The values as they are, in a tenth of the time, as each query by time has such an array made: after the header, and the length and the lower
        // bound of its one dimension, which end where values are aligned.
        let header = size_of::<pg_sys::ArrayType>() + 2 * size_of::<i32>();
        let size = header + size_of_val(&values[..]);
        let array = pg_sys::palloc0(size).cast::<pg_sys::ArrayType>();
        pgrx::set_varsize_4b(array.cast(), size as i32);
        (*array).ndim = 1;
        (*array).elemtype = of_type;
        array.add(1).cast::<[i32; 2]>().write([values.len() as i32, 1]);
        array.cast::<u8>().add(header).cast::<Datum>().copy_from_nonoverlapping(values.as_ptr(), values.len());
        array.into()
    }
}

/// An array of `timestamptz`, `timestamp` or `date` with each element once, in their order, and none that is NULL. Another array as it is.
pub fn sorted(array: AnyArray) -> AnyArray {
    let datum = array.datum();
    // SAFETY: an array, whose header has the type of its elements; and a new one of the same type.
    let sorted = unsafe {
        let of_type = (*pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast::<pg_sys::ArrayType>()).elemtype;
        if !matches!(of_type, pg_sys::TIMESTAMPTZOID | pg_sys::TIMESTAMPOID | pg_sys::DATEOID) {
            return array;
        }
        let own = elements(datum, of_type).into_iter().filter(|&(_, is_null)| !is_null);
        // They are whole numbers, of 8 or 4 bytes.
        let whole = |one: &Datum| match of_type {
            pg_sys::DATEOID => (one.value() as i32).into(),
            _ => one.value() as i64,
        };
        let mut all: Vec<Datum> = own.map(|(one, _)| one).collect();
        all.sort_unstable_by_key(whole);
        all.dedup_by_key(|one| whole(one));
        AnyArray::from_polymorphic_datum(array_of(of_type, all), false, array.oid())
    };
    sorted.unwrap_or(array)
}

/// The zones that PostgreSQL knows.
pub struct KnownZones;

fn has_digit(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_digit())
}

/// How many changes of a zone are looked at, at most.
const MOST: usize = 10;

impl Zones for KnownZones {
    fn offsets(&self, zone: Zone<'_>, since: i64, until: i64) -> Option<(i64, i64)> {
        const SECOND: i64 = 1_000_000;
        const EPOCH: i64 = 946_684_800;
        const YEAR: i64 = 366 * 86_400;
        // An abbreviation such as `EST` comes before a zone of the same name. None of them has a slash, or a digit after a letter. From 18 on, those of
        // the session's zone are known, too, such as `-03`.
        let is_zone = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic()) && (name.contains('/') || has_digit(name))
        };
        let name = match zone {
            Zone::Named("UTC") => return Some((0, 0)),
            Zone::Named(name) if is_zone(name) => Some(CString::new(name).ok()?),
            Zone::Named(_) => return None,
            Zone::Session => None,
        };
        let (mut at, mut until) = (since.div_euclid(SECOND) + EPOCH, until.div_euclid(SECOND) + EPOCH);
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        // SAFETY: the session's zone is there while the session is, and zones that were read are kept, with their names. The function writes to these alone.
        unsafe {
            let zone = name.map_or(pg_sys::session_timezone, |name| pg_sys::pg_tzset(name.as_ptr()));
            if zone.is_null() {
                return None;
            }
            // A zone that says its offsets itself, such as `FOO+20` or `FOO+160BAR`, may be a week from UTC, and change by two. So all of its year counts.
            if has_digit(CStr::from_ptr(pg_sys::pg_get_timezone_name(zone)).to_str().unwrap_or("0")) {
                at -= YEAR;
                until += YEAR;
            }
            for _ in 0..MOST {
                let (mut before, mut after, mut dst, mut then, mut change) = (0, 0, 0, 0, 0);
                let found = pg_sys::pg_next_dst_boundary(
                    &raw const at,
                    &raw mut before,
                    &raw mut dst,
                    &raw mut change,
                    &raw mut after,
                    &raw mut then,
                    zone,
                );
                if found < 0 {
                    return None;
                }
                least = least.min(before);
                most = most.max(before);
                if found == 0 || change > until {
                    return Some((least * SECOND, most * SECOND));
                }
                at = change;
            }
        }
        None
    }
}
