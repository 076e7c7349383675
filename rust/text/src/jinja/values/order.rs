// SPDX-License-Identifier: Apache-2.0
//! Which values are equal, which is less, and sorts by that, as in Python.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::jinja::error::{descend, fail, spend, Error, Result};
use crate::jinja::values::value::{Value, View};

fn compare_floats(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float >= 1e38 {
        return Some(Ordering::Less);
    }
    if float <= -1e38 {
        return Some(Ordering::Greater);
    }
    let whole = float.floor();
    Some(integer.cmp(&(whole as i128)).then(if float > whole { Ordering::Less } else { Ordering::Equal }))
}

/// The order of two numbers (bools are numbers); None if one is no number or NaN.
pub fn compare_numbers(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::Float(float), _) => Some(compare_floats(right.as_index()?, *float)?.reverse()),
        (_, Value::Float(float)) => compare_floats(left.as_index()?, *float),
        _ => Some(left.as_index()?.cmp(&right.as_index()?)),
    }
}

fn equal_items(left: &[Value], right: &[Value]) -> Result<bool> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (left, right) in left.iter().zip(right) {
        if !same_or_equal(left, right)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Python compares members by identity first: a NaN equals itself there.
pub fn same_or_equal(left: &Value, right: &Value) -> Result<bool> {
    if let (Value::Float(left), Value::Float(right)) = (left, right) {
        if left.is_nan() && right.is_nan() {
            return fail("whether a list has the same nan is not supported");
        }
    }
    equal(left, right)
}

pub fn equal(left: &Value, right: &Value) -> Result<bool> {
    spend(1)?;
    descend()?;
    Ok(match (left, right) {
        (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
        (Value::Str(left), Value::Str(right)) => left.text == right.text,
        (Value::List(left), Value::List(right)) | (Value::Tuple(left), Value::Tuple(right)) => {
            equal_items(&left.values, &right.values)?
        }
        (Value::Dict(left), Value::Dict(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (key, value) in left.pairs() {
                match right.get(&key.key()?) {
                    Some(other) if same_or_equal(value, other)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (Value::Range(left), Value::Range(right)) => {
            left.size == right.size
                && (left.size == 0
                    || left.start == right.start && (left.size == 1 || left.step == right.step))
        }
        (Value::View(View::Values, left), Value::View(View::Values, right)) => {
            if Rc::ptr_eq(left, right) {
                return fail("comparing dict_values is not supported");
            }
            false
        }
        (Value::View(View::Values, _), _) | (_, Value::View(View::Values, _)) => false,
        (Value::View(..), Value::View(..)) => return fail("comparing views of dicts is not supported"),
        (Value::Iterator(left), Value::Iterator(right)) => Rc::ptr_eq(left, right),
        (Value::Object(left, one), Value::Object(right, other)) => left == right && one == other,
        (Value::Function(left), Value::Function(right)) => left == right,
        (Value::Method(left), Value::Method(right)) => {
            if left.name == right.name {
                return fail("comparing methods is not supported");
            }
            false
        }
        _ => compare_numbers(left, right) == Some(Ordering::Equal),
    })
}

fn compare_items(left: &[Value], right: &[Value]) -> Result<Option<Ordering>> {
    for (left, right) in left.iter().zip(right) {
        if !same_or_equal(left, right)? {
            return compare(left, right);
        }
    }
    Ok(Some(left.len().cmp(&right.len())))
}

/// Python's `<` and its kin: None where both sides are unordered numbers, an error where Python raises.
pub fn compare(left: &Value, right: &Value) -> Result<Option<Ordering>> {
    spend(1)?;
    descend()?;
    left.refuse_undefined()?;
    right.refuse_undefined()?;
    let is_number = |value: &Value| matches!(value, Value::Bool(_) | Value::Int(_) | Value::Float(_));
    Ok(match (left, right) {
        (Value::Str(left), Value::Str(right)) => Some(left.text.cmp(&right.text)),
        (Value::List(left), Value::List(right)) | (Value::Tuple(left), Value::Tuple(right)) => {
            compare_items(&left.values, &right.values)?
        }
        _ if is_number(left) && is_number(right) => compare_numbers(left, right),
        _ => return fail(format!("'{}' and '{}' have no order", left.type_name(), right.type_name())),
    })
}

/// Stable, as Python's sort is; an error of `order` ends it.
pub fn sort_by<T>(
    items: &mut [T],
    order: impl Fn(&T, &T) -> Result<Option<Ordering>>,
    reverse: bool,
) -> Result<()> {
    let mut error: Option<Error> = None;
    items.sort_by(|left, right| {
        if error.is_some() {
            return Ordering::Equal;
        }
        match order(left, right) {
            Ok(Some(found)) if reverse => found.reverse(),
            Ok(Some(found)) => found,
            Ok(None) => {
                error = Some(Error::new("sorting nan is not supported"));
                Ordering::Equal
            }
            Err(found) => {
                error = Some(found);
                Ordering::Equal
            }
        }
    });
    error.map_or(Ok(()), Err)
}
