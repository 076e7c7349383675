// SPDX-License-Identifier: Apache-2.0
//! The chat template handle: a template and its renders, each within the budget.

use crate::abi::{bytes, give, guard, take, Text};
use crate::budget;
use crate::generation::{collect, Marks};
use crate::jinja::{Brackets, Error, Template};

const OUTPUT_BYTES: usize = 8 << 20;
const SOURCE_BYTES: usize = 4 << 20;

#[repr(C)]
pub struct Render {
    text: Text,
    spans: *mut i64,
    num_spans: usize,
}

fn create(source: &[u8]) -> Result<Template, Error> {
    if source.len() > SOURCE_BYTES {
        return Err(Error::new(format!(
            "the template has {} bytes; at most {SOURCE_BYTES} are allowed",
            source.len()
        )));
    }
    let source = std::str::from_utf8(source)
        .map_err(|error| Error::new(format!("the template is not UTF-8: {error}")))?;
    budget::open();
    Template::parse(source)
}

fn render(template: &Template, context: &[u8]) -> Result<(String, Vec<i64>), Error> {
    let context = std::str::from_utf8(context)
        .map_err(|error| Error::new(format!("the conversation is not UTF-8: {error}")))?;
    budget::open();
    let variables =
        serde_json::from_str(context).map_err(|error| Error::new(format!("the conversation: {error}")))?;
    let marks = Marks::absent_from(context);
    let text = template.render(variables, Brackets { begin: &marks.begin, end: &marks.end })?;
    if text.len() > OUTPUT_BYTES {
        return Err(Error::new(format!(
            "the template writes {} bytes; at most {OUTPUT_BYTES} are allowed",
            text.len()
        )));
    }
    Ok(collect(&text, &marks))
}

#[no_mangle]
pub unsafe extern "C" fn convoy_template_create(
    source: *const u8,
    size: usize,
    chat_template: *mut *mut Template,
    line: *mut i64,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let template = create(bytes(source, size)).map_err(|failure| {
            line.write(failure.line as i64);
            failure.message
        })?;
        chat_template.write(Box::into_raw(Box::new(template)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn convoy_template_free(chat_template: *mut Template) {
    if !chat_template.is_null() {
        guard(std::ptr::null_mut(), || {
            drop(Box::from_raw(chat_template));
            Ok(())
        });
    }
}

#[no_mangle]
pub unsafe extern "C" fn convoy_template_has_generation(chat_template: *const Template) -> i32 {
    (*chat_template).has_generation as i32
}

#[no_mangle]
pub unsafe extern "C" fn convoy_template_render(
    chat_template: *const Template,
    context: *const u8,
    size: usize,
    out: *mut Render,
    line: *mut i64,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let (text, spans) = render(&*chat_template, bytes(context, size)).map_err(|failure| {
            line.write(failure.line as i64);
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
