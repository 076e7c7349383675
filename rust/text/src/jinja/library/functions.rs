// SPDX-License-Identifier: Apache-2.0
//! Functions that every chat template has.

use crate::jinja::error::{fail, Result};
use crate::jinja::interpreter::state::{Function, Renderer, Table};
use crate::jinja::values::arguments::{index, Arguments};
use crate::jinja::values::value::{Object, Range, Value};

const NAMES: &[&str] =
    &["range", "dict", "namespace", "cycler", "joiner", "raise_exception", "strftime_now", "lipsum"];

pub const FUNCTIONS: Table<Function> = &[(NAMES, call)];

// Jinja2's sandbox has the same.
const MAX_RANGE: i128 = 100_000;

fn range(arguments: Arguments) -> Result<Value> {
    let [first, second, step] = arguments.bind_positional("range", 1)?;
    let first = index(&first.unwrap_or(Value::None), "range")?;
    let (start, stop) = match second {
        None => (0, first),
        Some(stop) => (first, index(&stop, "range")?),
    };
    let step = step.map_or(Ok(1), |step| index(&step, "range"))?;
    if step == 0 {
        return fail("range() arg 3 must not be zero");
    }
    let Some(distance) = (if step > 0 { stop.checked_sub(start) } else { start.checked_sub(stop) }) else {
        return fail(format!("range() is larger than {MAX_RANGE}"));
    };
    let size = if distance > 0 { (distance - 1) / step.checked_abs().unwrap_or(i128::MAX) + 1 } else { 0 };
    if size > MAX_RANGE {
        return fail(format!("range() is larger than {MAX_RANGE}"));
    }
    Ok(Value::Range(Range { start, stop, step, size }))
}

/// datetime.fromtimestamp(clock_s).strftime(format).
pub fn strftime(format: &str, clock_s: i64) -> Result<String> {
    let Ok(wanted) = std::ffi::CString::new(format) else { return fail("strftime_now: NUL in the format") };
    let mut out = vec![0u8; 4096];
    // SAFETY: plain C calls on local buffers; strftime writes at most out.len() bytes.
    let size = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&clock_s, &mut parts);
        libc::strftime(out.as_mut_ptr().cast(), out.len(), wanted.as_ptr(), &parts)
    };
    out.truncate(size);
    match String::from_utf8(out) {
        Ok(text) => Ok(text),
        Err(_) => fail("strftime_now: the format is not UTF-8"),
    }
}

fn call(renderer: &mut Renderer, name: &str, arguments: Arguments) -> Result<Value> {
    match name {
        "range" => range(arguments),
        "dict" => Ok(Value::dict(arguments.into_dict()?)),
        "namespace" => {
            renderer.namespaces.push(arguments.into_dict()?);
            Ok(Value::Object(Object::Namespace, renderer.namespaces.len() - 1))
        }
        "cycler" => {
            if !arguments.named.is_empty() || arguments.positional.is_empty() {
                return fail("cycler: at least one item has to be provided");
            }
            renderer.cyclers.push((arguments.positional, 0));
            Ok(Value::Object(Object::Cycler, renderer.cyclers.len() - 1))
        }
        "joiner" => {
            let [separator] = arguments.bind("joiner", ["sep"], 0)?;
            renderer.joiners.push((separator.unwrap_or_else(|| ", ".into()), false));
            Ok(Value::Object(Object::Joiner, renderer.joiners.len() - 1))
        }
        "raise_exception" => {
            let [message] = arguments.bind("raise_exception", ["message"], 1)?;
            let message = renderer.text_of(&message.unwrap_or(Value::None))?;
            fail(format!("the template refuses the conversation: {message}"))
        }
        "strftime_now" => {
            let [format] = arguments.bind("strftime_now", ["format"], 1)?;
            match format.unwrap_or(Value::None).as_str() {
                Some(format) => Ok(strftime(format, renderer.clock_s)?.into()),
                None => fail("strftime_now: the format is a text"),
            }
        }
        _ => fail(format!("the function `{name}` is not supported")),
    }
}
