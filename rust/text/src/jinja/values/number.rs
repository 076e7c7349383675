// SPDX-License-Identifier: Apache-2.0
//! Python's arithmetic. Whole numbers have 127 bits; a result beyond them is refused.

use crate::jinja::error::{fail, spend, Result};
use crate::jinja::values::text::is_space;
use crate::jinja::values::value::Value;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
}

#[derive(Clone, Copy)]
pub enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub fn of(value: &Value) -> Option<Number> {
        match value {
            Value::Float(value) => Some(Number::Float(*value)),
            _ => value.as_index().map(Number::Int),
        }
    }

    pub fn float(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Value {
        match number {
            Number::Int(value) => Value::Int(value),
            Number::Float(value) => Value::Float(value),
        }
    }
}

fn exact(value: Option<i128>) -> Result<Number> {
    value.map(Number::Int).ok_or_else(|| "whole numbers have at most 38 digits here".to_string().into())
}

fn floor_divide(left: i128, right: i128) -> Option<i128> {
    let quotient = left.checked_div(right)?;
    Some(if left % right != 0 && (left < 0) != (right < 0) { quotient - 1 } else { quotient })
}

fn floor_modulo(left: i128, right: i128) -> Option<i128> {
    let rest = left.checked_rem(right)?;
    Some(if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest })
}

/// CPython's float_divmod.
fn float_divmod(left: f64, right: f64) -> (f64, f64) {
    let mut rest = left % right;
    let mut quotient = (left - rest) / right;
    if rest != 0.0 {
        if (right < 0.0) != (rest < 0.0) {
            rest += right;
            quotient -= 1.0;
        }
    } else {
        rest = 0.0f64.copysign(right);
    }
    if quotient != 0.0 {
        let floor = quotient.floor();
        quotient = if quotient - floor > 0.5 { floor + 1.0 } else { floor };
    } else {
        quotient = 0.0f64.copysign(left / right);
    }
    (quotient, rest)
}

/// The quotient of two whole numbers, rounded once.
fn true_divide(left: i128, right: i128) -> f64 {
    const EXACT: u128 = 1 << 53;
    let (top, bottom) = (left.unsigned_abs(), right.unsigned_abs());
    let sign = if (left < 0) != (right < 0) { -1.0 } else { 1.0 };
    if top <= EXACT && bottom <= EXACT {
        return sign * (top as f64 / bottom as f64);
    }
    // 64 bits of the quotient, the last one sticky; converting those rounds as the whole would.
    let (mut quotient, mut rest) = (top / bottom, top % bottom);
    let mut shift = 0i32;
    while quotient >> 62 == 0 && shift < 200 {
        rest = match rest.checked_mul(2) {
            Some(doubled) => doubled,
            None => return sign * (top as f64 / bottom as f64),
        };
        quotient = quotient * 2 + u128::from(rest >= bottom);
        if rest >= bottom {
            rest -= bottom;
        }
        shift += 1;
    }
    let sticky = quotient | u128::from(rest != 0);
    sign * (sticky as f64) * 2f64.powi(-shift)
}

fn power(left: Number, right: Number) -> Result<Number> {
    if let (Number::Int(base), Number::Int(exponent)) = (left, right) {
        if exponent >= 0 {
            spend(exponent.min(1 << 20) as usize / 64)?;
            return match (base, u32::try_from(exponent)) {
                (0 | 1, _) => Ok(Number::Int(if exponent == 0 { 1 } else { base })),
                (-1, _) => Ok(Number::Int(if exponent % 2 == 0 { 1 } else { -1 })),
                (_, Ok(exponent)) => exact(base.checked_pow(exponent)),
                _ => exact(None),
            };
        }
    }
    let (base, exponent) = (left.float(), right.float());
    if base == 0.0 && exponent < 0.0 {
        return fail("0.0 cannot be raised to a negative power");
    }
    if base < 0.0 && base.is_finite() && exponent.is_finite() && exponent.fract() != 0.0 {
        return fail("complex numbers are not supported");
    }
    let result = base.powf(exponent);
    if result.is_infinite() && base.is_finite() && exponent.is_finite() {
        return fail("numerical result out of range");
    }
    Ok(Number::Float(result))
}

pub fn arithmetic(operator: Binary, left: Number, right: Number) -> Result<Number> {
    let by_zero = || match (operator, left, right) {
        (Binary::Modulo, Number::Int(_), Number::Int(_)) => "integer modulo by zero",
        (Binary::Modulo, ..) => "float modulo",
        _ => "division by zero",
    };
    let divides = matches!(operator, Binary::Divide | Binary::FloorDivide | Binary::Modulo);
    if divides && right.float() == 0.0 {
        return fail(by_zero());
    }
    if let (Number::Int(left), Number::Int(right)) = (left, right) {
        match operator {
            Binary::Add => return exact(left.checked_add(right)),
            Binary::Subtract => return exact(left.checked_sub(right)),
            Binary::Multiply => return exact(left.checked_mul(right)),
            Binary::FloorDivide => return exact(floor_divide(left, right)),
            Binary::Modulo => return exact(floor_modulo(left, right)),
            Binary::Divide => return Ok(Number::Float(true_divide(left, right))),
            Binary::Power => {}
        }
    }
    if operator == Binary::Power {
        return power(left, right);
    }
    let (left, right) = (left.float(), right.float());
    Ok(Number::Float(match operator {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        Binary::FloorDivide => float_divmod(left, right).0,
        _ => float_divmod(left, right).1,
    }))
}

/// int() of a text in a base; None where Python raises ValueError.
pub fn parse_int(text: &str, base: u32) -> Option<Result<i128>> {
    let trimmed = text.trim_matches(is_space);
    let (sign, digits) = match trimmed.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let lower = digits.to_lowercase();
    let prefix = match lower.get(..2) {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => 0,
    };
    let (base, digits) = match base {
        0 if prefix == 0 => {
            if digits.len() > 1 && digits.starts_with('0') && digits.trim_matches(['0', '_']) != "" {
                return None;
            }
            (10, digits)
        }
        0 => (prefix, digits[2..].strip_prefix('_').unwrap_or(&digits[2..])),
        _ if prefix == base => (base, digits[2..].strip_prefix('_').unwrap_or(&digits[2..])),
        _ => (base, digits),
    };
    if digits.is_empty() || digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    let mut value: i128 = 0;
    let mut fits = true;
    for digit in digits.chars().filter(|digit| *digit != '_') {
        // Digits of other scripts are Python's too; they are refused, not read wrongly.
        if !digit.is_ascii() && digit.is_numeric() {
            return Some(fail("digits of other scripts are not supported"));
        }
        let digit = i128::from(digit.to_digit(base)?);
        match value.checked_mul(i128::from(base)).and_then(|value| value.checked_add(digit)) {
            Some(next) => value = next,
            None => fits = false,
        }
    }
    if !fits {
        return Some(fail("whole numbers have at most 38 digits here"));
    }
    Some(Ok(sign * value))
}

/// float() of a text; None where Python raises ValueError.
pub fn parse_float(text: &str) -> Option<f64> {
    let trimmed = text.trim_matches(is_space);
    let bytes = trimmed.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
        if *byte == b'_' && !(digit(at.checked_sub(1)) && digit(Some(at + 1))) {
            return None;
        }
    }
    trimmed.replace('_', "").parse().ok()
}

/// int() of a float; None for infinities and NaN.
pub fn truncate(value: f64) -> Option<Result<i128>> {
    if !value.is_finite() {
        return None;
    }
    Some(if value.abs() < 1e38 {
        Ok(value as i128)
    } else {
        fail("whole numbers have at most 38 digits here")
    })
}

fn round_int_half_even(value: i128, unit: i128) -> i128 {
    let rest = value.rem_euclid(unit);
    let down = value - rest;
    match (rest * 2).cmp(&unit) {
        std::cmp::Ordering::Less => down,
        std::cmp::Ordering::Greater => down + unit,
        std::cmp::Ordering::Equal if (down / unit) % 2 == 0 => down,
        std::cmp::Ordering::Equal => down + unit,
    }
}

/// round(value, digits).
pub fn round(value: Number, digits: i128) -> Result<Number> {
    match value {
        Number::Int(value) if digits >= 0 => Ok(Number::Int(value)),
        Number::Int(value) => {
            Ok(Number::Int(match 10i128.checked_pow(digits.unsigned_abs().min(99) as u32) {
                Some(unit) if unit <= i128::MAX / 4 && value.abs() <= i128::MAX / 4 => {
                    round_int_half_even(value, unit)
                }
                _ => 0,
            }))
        }
        Number::Float(value) if !value.is_finite() || value == 0.0 || digits > 323 => {
            Ok(Number::Float(value))
        }
        Number::Float(value) if digits >= 0 => {
            Ok(Number::Float(format!("{value:.*}", digits as usize).parse().unwrap_or(value)))
        }
        Number::Float(value) => {
            let zero = Number::Float(0.0f64.copysign(value));
            if digits < -37 || value.abs() >= 1e37 {
                return if digits < -308 {
                    Ok(zero)
                } else {
                    fail("rounding to such a unit is not supported")
                };
            }
            let unit = 10i128.pow(digits.unsigned_abs() as u32);
            let whole = value.trunc() as i128;
            // A fraction beyond a tie decides it.
            let tie = (whole.rem_euclid(unit)) * 2 == unit && value.fract() != 0.0;
            let nudged = if tie { whole + if value > 0.0 { 1 } else { -1 } } else { whole };
            let rounded = round_int_half_even(nudged, unit);
            Ok(if rounded == 0 { zero } else { Number::Float(rounded as f64) })
        }
    }
}
