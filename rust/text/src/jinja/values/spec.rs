// SPDX-License-Identifier: Apache-2.0
//! Format specifications of Python: how numbers and texts are written for `%` and str.format.

use crate::jinja::error::{fail, Result};
use crate::jinja::values::number::Number;
use crate::jinja::values::strings::pad;
use crate::jinja::values::text::{float_repr, str_of};
use crate::jinja::values::value::Value;

const MAX_DIGITS: usize = 4096;

fn with_exponent(text: &str, upper: bool) -> String {
    let Some((digits, exponent)) = text.split_once('e') else { return text.into() };
    let value: i32 = exponent.parse().unwrap_or(0);
    let sign = if value < 0 { '-' } else { '+' };
    format!("{digits}{}{sign}{:02}", if upper { 'E' } else { 'e' }, value.abs())
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

/// A finite, not negative number by one of e, f, g.
fn digits_of(size: f64, kind: char, precision: usize, alternate: bool) -> String {
    match kind.to_ascii_lowercase() {
        'f' => {
            let text = format!("{size:.precision$}");
            if alternate && precision == 0 {
                text + "."
            } else {
                text
            }
        }
        'e' => with_exponent(&format!("{size:.precision$e}"), kind == 'E'),
        _ => {
            let precision = precision.max(1);
            let scientific = format!("{size:.*e}", precision - 1);
            let exponent: i32 =
                scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
            if exponent < -4 || exponent >= precision as i32 {
                let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
                let mantissa = if alternate { mantissa } else { without_trailing_zeros(mantissa) };
                with_exponent(&format!("{mantissa}e{exponent}"), kind == 'G')
            } else {
                let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
                let text = format!("{size:.decimals$}");
                if alternate {
                    text
                } else {
                    without_trailing_zeros(&text).into()
                }
            }
        }
    }
}

/// The size of a float, without its sign.
pub fn float_digits(value: f64, kind: char, precision: usize, alternate: bool) -> Result<String> {
    if precision > MAX_DIGITS {
        return fail(format!("a format asks for more than {MAX_DIGITS} digits"));
    }
    let size = value.abs();
    if !size.is_finite() {
        let text = if size.is_nan() { "nan" } else { "inf" };
        return Ok(if kind.is_ascii_uppercase() { text.to_uppercase() } else { text.into() });
    }
    Ok(digits_of(size, kind, precision, alternate))
}

pub fn int_digits(size: u128, kind: char) -> String {
    match kind {
        'b' => format!("{size:b}"),
        'o' => format!("{size:o}"),
        'x' => format!("{size:x}"),
        'X' => format!("{size:X}"),
        _ => size.to_string(),
    }
}

/// [[fill]align][sign][z][#][0][width][grouping][.precision][type]
#[derive(Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    zero: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

fn parse(text: &str) -> Result<Spec> {
    let letters: Vec<char> = text.chars().collect();
    let mut spec = Spec::default();
    let mut at = 0;
    let is_align = |letter: Option<&char>| letter.is_some_and(|letter| "<>=^".contains(*letter));
    if is_align(letters.get(1)) {
        (spec.fill, spec.align) = (Some(letters[0]), Some(letters[1]));
        at = 2;
    } else if is_align(letters.first()) {
        spec.align = Some(letters[0]);
        at = 1;
    }
    if let Some(sign @ ('+' | '-' | ' ')) = letters.get(at) {
        spec.sign = Some(*sign);
        at += 1;
    }
    if letters.get(at) == Some(&'#') {
        spec.alternate = true;
        at += 1;
    }
    if letters.get(at) == Some(&'0') {
        spec.zero = true;
        at += 1;
    }
    let number = |at: &mut usize| -> Result<Option<usize>> {
        let begin = *at;
        let mut value = 0usize;
        while let Some(digit) = letters.get(*at).and_then(|letter| letter.to_digit(10)) {
            value = value.saturating_mul(10).saturating_add(digit as usize);
            *at += 1;
        }
        if value > 1 << 30 {
            return fail("a width in a format is too large");
        }
        Ok((*at > begin).then_some(value))
    };
    spec.width = number(&mut at)?.unwrap_or(0);
    if let Some(grouping @ (',' | '_')) = letters.get(at) {
        spec.grouping = Some(*grouping);
        at += 1;
    }
    if letters.get(at) == Some(&'.') {
        at += 1;
        spec.precision = number(&mut at)?;
        if spec.precision.is_none() {
            return fail("Format specifier missing precision");
        }
    }
    if let Some(kind) = letters.get(at) {
        spec.kind = Some(*kind);
        at += 1;
    }
    if at < letters.len() {
        return fail(format!("Invalid format specifier '{text}'"));
    }
    Ok(spec)
}

fn grouped(digits: &str, separator: char, every: usize) -> String {
    let mut out = Vec::new();
    for (index, digit) in digits.chars().rev().enumerate() {
        if index > 0 && index % every == 0 {
            out.push(separator);
        }
        out.push(digit);
    }
    out.into_iter().rev().collect()
}

fn place(spec: &Spec, sign: &str, prefix: &str, digits: String) -> Result<String> {
    let every = if matches!(spec.kind, Some('b' | 'o' | 'x' | 'X')) { 4 } else { 3 };
    let whole_size = digits.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(digits.len());
    let (whole, rest) = digits.split_at(if matches!(spec.kind, Some('x' | 'X')) {
        whole_size
    } else {
        digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len())
    });
    let align = spec.align.unwrap_or(if spec.zero { '=' } else { '>' });
    let fill = spec.fill.unwrap_or(if spec.zero { '0' } else { ' ' });
    let head = format!("{sign}{prefix}");
    let body = match spec.grouping {
        Some(separator) => {
            if align == '=' && fill == '0' {
                return fail("zero padding with grouping is not supported");
            }
            grouped(whole, separator, every) + rest
        }
        None => digits.clone(),
    };
    if align == '=' {
        let width = spec.width.saturating_sub(head.chars().count());
        return Ok(head + &pad(body, width, fill, '>')?);
    }
    pad(head + &body, spec.width, fill, align)
}

fn sign_of(spec: &Spec, negative: bool) -> &'static str {
    match spec.sign {
        _ if negative => "-",
        Some('+') => "+",
        Some(' ') => " ",
        _ => "",
    }
}

fn format_float(spec: &Spec, value: f64) -> Result<String> {
    let sign = sign_of(spec, value.is_sign_negative() && !value.is_nan());
    let digits = match spec.kind {
        None if spec.precision.is_none() => {
            if spec.alternate {
                return fail("`#` without a type is not supported");
            }
            float_repr(value.abs())
        }
        None => {
            // As g, but with a digit after the point, and scientific one step earlier.
            let precision = spec.precision.unwrap_or(0).max(1);
            let scientific = format!("{:.*e}", precision - 1, value.abs());
            let exponent: i32 =
                scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
            if !value.is_finite() {
                float_digits(value, 'g', 6, false)?
            } else if exponent < -4 || exponent >= precision as i32 - 1 && value != 0.0 {
                let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
                with_exponent(&format!("{}e{exponent}", without_trailing_zeros(mantissa)), false)
            } else {
                let text = float_digits(value, 'g', precision, false)?;
                if text.contains('.') {
                    text
                } else {
                    text + ".0"
                }
            }
        }
        Some('%') => {
            let text = float_digits(value * 100.0, 'f', spec.precision.unwrap_or(6), spec.alternate)?;
            text + "%"
        }
        Some(kind @ ('e' | 'E' | 'f' | 'F' | 'g' | 'G')) => {
            float_digits(value, kind, spec.precision.unwrap_or(6), spec.alternate)?
        }
        Some('n') => return fail("the format `n` is not supported"),
        Some(kind) => return fail(format!("Unknown format code '{kind}' for object of type 'float'")),
    };
    place(spec, sign, "", digits)
}

fn format_int(spec: &Spec, value: i128) -> Result<String> {
    match spec.kind {
        None | Some('d' | 'b' | 'o' | 'x' | 'X') => {}
        Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%') => return format_float(spec, value as f64),
        Some('c') => return format_letter(spec, value),
        Some('n') => return fail("the format `n` is not supported"),
        Some(kind) => return fail(format!("Unknown format code '{kind}' for object of type 'int'")),
    }
    if spec.precision.is_some() {
        return fail("Precision not allowed in integer format specifier");
    }
    let kind = spec.kind.unwrap_or('d');
    if spec.grouping == Some(',') && kind != 'd' {
        return fail(format!("Cannot specify ',' with '{kind}'."));
    }
    let prefix = match kind {
        'b' if spec.alternate => "0b",
        'o' if spec.alternate => "0o",
        'x' if spec.alternate => "0x",
        'X' if spec.alternate => "0X",
        _ => "",
    };
    place(spec, sign_of(spec, value < 0), prefix, int_digits(value.unsigned_abs(), kind))
}

fn format_letter(spec: &Spec, value: i128) -> Result<String> {
    if spec.sign.is_some() || spec.alternate || spec.precision.is_some() || spec.grouping.is_some() {
        return fail("a letter has no sign, base, precision or grouping to format");
    }
    match u32::try_from(value).ok().and_then(char::from_u32) {
        Some(letter) => place(spec, "", "", letter.to_string()),
        None => fail("%c arg not in range(0x110000)"),
    }
}

fn format_text(spec: &Spec, text: &str) -> Result<String> {
    if spec.kind.is_some_and(|kind| kind != 's') {
        return fail(format!("Unknown format code '{}' for object of type 'str'", spec.kind.unwrap_or('s')));
    }
    if spec.sign.is_some() || spec.alternate || spec.grouping.is_some() || spec.align == Some('=') {
        return fail("a text has no sign, base or grouping to format");
    }
    let kept: String = match spec.precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text.into(),
    };
    let fill = spec.fill.unwrap_or(if spec.zero { '0' } else { ' ' });
    pad(kept, spec.width, fill, spec.align.unwrap_or('<'))
}

/// format(value, spec).
pub fn format_value(value: &Value, text: &str) -> Result<String> {
    if text.is_empty() {
        return str_of(value);
    }
    let spec = parse(text)?;
    match (value, Number::of(value)) {
        (Value::Str(text), _) => format_text(&spec, &text.text),
        (Value::Float(value), _) => format_float(&spec, *value),
        (_, Some(Number::Int(value))) => format_int(&spec, value),
        _ => fail(format!("unsupported format string passed to {}.__format__", value.type_name())),
    }
}
