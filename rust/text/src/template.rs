// SPDX-License-Identifier: Apache-2.0
//! The chat template handle: Jinja as Hugging Face sets it up, within limits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use minijinja::value::{Kwargs, Value};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior};

use crate::abi::{bytes, give, guard, take, Text};
use crate::generation::{collect, rewrite, Marks};
use crate::budget::{self, Refusal};
use crate::python;

const FUEL_STEPS: u64 = 1_000_000;
const RECURSION: usize = 200;
const OUTPUT_BYTES: usize = 8 << 20;
const SOURCE_BYTES: usize = 4 << 20;
const NAME: &str = "chat_template";
const MARKS: &str = "_generation_marks";

pub struct Handle {
    environment: Arc<Environment<'static>>,
    has_generation: bool,
    // A template that passed a limit left a parked thread behind: it does not run again.
    refused: AtomicBool,
}

#[repr(C)]
pub struct Render {
    text: Text,
    spans: *mut i64,
    num_spans: usize,
}

const NO_THREAD: i64 = -1;

struct Failure {
    /// NO_THREAD: the system is at fault, no line of the template.
    line: i64,
    message: String,
}

impl Failure {
    fn new(message: impl Into<String>) -> Failure {
        Failure { line: 0, message: message.into() }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        match refusal {
            Refusal::Limit(message) => Failure::new(message),
            Refusal::NoThread(message) => Failure { line: NO_THREAD, message },
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        // The innermost cause is the one a person can act on.
        let mut message = error.detail().map_or_else(|| error.kind().to_string(), str::to_string);
        if error.kind() == ErrorKind::OutOfFuel {
            message = format!("the template takes more than {FUEL_STEPS} steps");
        }
        let mut line = error.line().unwrap_or(0) as i64;
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            if let Some(cause) = cause.downcast_ref::<Error>() {
                message = cause.detail().map_or_else(|| cause.kind().to_string(), str::to_string);
                line = cause.line().map_or(line, |line| line as i64);
            }
            source = cause.source();
        }
        Failure { line, message }
    }
}

fn generation(state: &State, options: Kwargs) -> Result<Value, Error> {
    let caller: Value = options.get("caller")?;
    let body = caller.call(state, &[])?;
    let text = python::text_of(&body)?;
    let begin = state.lookup(MARKS).unwrap_or_default().get_item(&Value::from(0))?;
    let end = state.lookup(MARKS).unwrap_or_default().get_item(&Value::from(1))?;
    Ok(Value::from_safe_string(format!("{begin}{text}{end}")))
}

fn raise_exception(message: Value) -> Result<Value, Error> {
    Err(Error::new(
        ErrorKind::InvalidOperation,
        format!("the template refuses the conversation: {}", python::text_of(&message)?),
    ))
}

fn format_value(out: &mut Output, _: &State, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => out.write_str(text),
        None => out.write_str(&python::text_of(value)?),
    }
    .map_err(|_| Error::new(ErrorKind::WriteFailure, "the output could not be written"))
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_keep_trailing_newline(false);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_fuel(Some(FUEL_STEPS));
    environment.set_recursion_limit(RECURSION);
    environment.set_formatter(format_value);
    environment.set_unknown_method_callback(python::method);
    environment.add_filter("tojson", python::tojson);
    environment.add_filter("string", |value: Value| python::text_of(&value));
    environment.add_test("iterable", |value: Value| python::is_iterable(&value));
    environment.add_test("sequence", |value: Value| python::is_sequence(&value));
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", |format: String| python::strftime_now(&format));
    environment.add_function("_generation", generation);
    environment
}

fn create(source: &[u8]) -> Result<Handle, Failure> {
    if source.len() > SOURCE_BYTES {
        return Err(Failure::new(format!(
            "the template has {} bytes; at most {SOURCE_BYTES} are allowed",
            source.len()
        )));
    }
    let source = std::str::from_utf8(source)
        .map_err(|error| Failure::new(format!("the template is not UTF-8: {error}")))?;
    let rewritten =
        rewrite(source).map_err(|error| Failure { line: error.line as i64, message: error.message })?;
    let has_generation = rewritten.has_generation;
    let environment = budget::run(move || {
        let mut environment = environment();
        environment.add_template_owned(NAME, rewritten.source).map_err(Failure::from)?;
        Ok::<_, Failure>(environment)
    })
    .map_err(Failure::from)??;
    Ok(Handle { environment: Arc::new(environment), has_generation, refused: AtomicBool::new(false) })
}

fn render(handle: &Handle, context: &[u8]) -> Result<(String, Vec<i64>), Failure> {
    if handle.refused.load(Ordering::Relaxed) {
        return Err(Failure::new("the template passed its limits before and does not run again"));
    }
    let context = std::str::from_utf8(context)
        .map_err(|error| Failure::new(format!("the conversation is not UTF-8: {error}")))?
        .to_string();
    let environment = handle.environment.clone();
    let outcome = budget::run(move || {
        let marks = Marks::absent_from(&context);
        let mut variables: std::collections::BTreeMap<String, Value> = serde_json::from_str(&context)
            .map_err(|error| Failure::new(format!("the conversation: {error}")))?;
        variables.insert(MARKS.into(), Value::from(vec![marks.begin.clone(), marks.end.clone()]));
        let text = environment.get_template(NAME)?.render(variables)?;
        if text.len() > OUTPUT_BYTES {
            return Err(Failure::new(format!(
                "the template writes {} bytes; at most {OUTPUT_BYTES} are allowed",
                text.len()
            )));
        }
        Ok(collect(&text, &marks))
    });
    match outcome {
        Ok(result) => result,
        Err(refusal) => {
            handle.refused.store(matches!(refusal, Refusal::Limit(_)), Ordering::Relaxed);
            Err(refusal.into())
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn convoy_template_create(
    source: *const u8,
    size: usize,
    chat_template: *mut *mut Handle,
    line: *mut i64,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let handle = create(bytes(source, size)).map_err(|failure| {
            line.write(failure.line);
            failure.message
        })?;
        chat_template.write(Box::into_raw(Box::new(handle)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn convoy_template_free(chat_template: *mut Handle) {
    if !chat_template.is_null() {
        guard(std::ptr::null_mut(), || {
            drop(Box::from_raw(chat_template));
            Ok(())
        });
    }
}

#[no_mangle]
pub unsafe extern "C" fn convoy_template_has_generation(chat_template: *const Handle) -> i32 {
    (*chat_template).has_generation as i32
}

#[no_mangle]
pub unsafe extern "C" fn convoy_template_render(
    chat_template: *mut Handle,
    context: *const u8,
    size: usize,
    out: *mut Render,
    line: *mut i64,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let (text, spans) = render(&*chat_template, bytes(context, size)).map_err(|failure| {
            line.write(failure.line);
            failure.message
        })?;
        let num_spans = spans.len() / 2;
        let (spans, _) = give(spans);
        out.write(Render { text: Text::new(text), spans, num_spans });
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn convoy_render_free(render: Render) {
    take(render.spans, render.num_spans * 2);
    crate::abi::convoy_text_free(render.text);
}
