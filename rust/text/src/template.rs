// SPDX-License-Identifier: Apache-2.0
//! The handles of a chat template and of a conversation, and the renders of one by the other, each within the budget.

use std::rc::Rc;

use crate::abi::{bytes, give, guard, take, Text};
use crate::budget;
use crate::generation::{collect, Marks};
use crate::jinja::{Brackets, Error, Items, Template, Value, Variables};

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
    budget::open(0);
    Template::parse(source)
}

/// A conversation and what else a template reads, for several renders on one thread.
pub struct Conversation {
    messages: Option<Rc<Items>>,
    others: Variables,
    marks: Marks,
    held_bytes: i64,
}

impl Conversation {
    fn read(json: &[u8]) -> Result<Conversation, Error> {
        let json = std::str::from_utf8(json)
            .map_err(|error| Error::new(format!("the conversation is not UTF-8: {error}")))?;
        budget::open(0);
        let said: Value =
            serde_json::from_str(json).map_err(|error| Error::new(format!("the conversation: {error}")))?;
        let mut messages = None;
        let mut others = Variables::default();
        if let Value::Dict(variables) = said {
            for (name, value) in variables.pairs() {
                match (name, value) {
                    (Value::Str(name), Value::List(items)) if &*name.text == "messages" => {
                        messages = Some(items.clone())
                    }
                    (Value::Str(name), _) => {
                        others.insert(name.text.clone(), value.clone());
                    }
                    _ => {}
                }
            }
        }
        let marks = Marks::absent_from(json);
        Ok(Conversation { messages, others, marks, held_bytes: budget::used_bytes() })
    }

    /// The first `num_messages`.
    fn render(
        &self,
        template: &Template,
        num_messages: usize,
        add_generation_prompt: bool,
        clock_s: i64,
    ) -> Result<(String, Vec<i64>), Error> {
        budget::open(self.held_bytes);
        let mut variables = self.others.clone();
        if let Some(all) = &self.messages {
            let first = &all.values[..num_messages.min(all.values.len())];
            variables.insert("messages".into(), Value::list(first.to_vec())?);
        }
        variables.insert("add_generation_prompt".into(), add_generation_prompt.into());
        let brackets = Brackets { begin: &self.marks.begin, end: &self.marks.end };
        let text = template.render(variables, brackets, clock_s)?;
        if text.len() > OUTPUT_BYTES {
            return Err(Error::new(format!(
                "the template writes {} bytes; at most {OUTPUT_BYTES} are allowed",
                text.len()
            )));
        }
        if template.has_generation {
            return Ok(collect(&text, &self.marks));
        }
        Ok((text, Vec::new()))
    }
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
pub unsafe extern "C" fn convoy_conversation_read(
    json: *const u8,
    size: usize,
    conversation: *mut *mut Conversation,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let read = Conversation::read(bytes(json, size)).map_err(|failure| failure.message)?;
        conversation.write(Box::into_raw(Box::new(read)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn convoy_conversation_free(conversation: *mut Conversation) {
    if !conversation.is_null() {
        guard(std::ptr::null_mut(), || {
            drop(Box::from_raw(conversation));
            Ok(())
        });
    }
}

#[no_mangle]
pub unsafe extern "C" fn convoy_template_render(
    chat_template: *const Template,
    conversation: *const Conversation,
    num_messages: usize,
    add_generation_prompt: i32,
    clock_s: i64,
    out: *mut Render,
    line: *mut i64,
    error: *mut Text,
) -> i32 {
    guard(error, || {
        let (text, spans) = (*conversation)
            .render(&*chat_template, num_messages, add_generation_prompt != 0, clock_s)
            .map_err(|failure| {
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
