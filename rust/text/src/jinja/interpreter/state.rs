// SPDX-License-Identifier: Apache-2.0
//! What a render holds: names in force, what has state, what is written so far, and the tables of what a template may call.

use std::collections::HashMap;
use std::rc::Rc;

use crate::jinja::error::{descend, fail, reserve, spend_copy, Result};
use crate::jinja::grammar::syntax::{Expr, Loop, Macro};
use crate::jinja::interpreter::scopes::Scopes;
use crate::jinja::values::arguments::Arguments;
use crate::jinja::values::text::{repr, str_of};
use crate::jinja::values::value::{Dict, Object, Value};

/// What a template reads, by name.
pub type Variables = HashMap<Rc<str>, Value, ahash::RandomState>;

/// What the output holds around the body of each `{% generation %}`.
pub struct Brackets<'b> {
    pub begin: &'b str,
    pub end: &'b str,
}

pub type Filter = fn(&mut Renderer, &str, Value, Arguments) -> Result<Value>;
pub type Test = fn(&Library, &str, &Value, Arguments) -> Result<bool>;
pub type Function = fn(&mut Renderer, &str, Arguments) -> Result<Value>;
/// The names that one function does the work of, and the function.
pub type Table<F> = &'static [(&'static [&'static str], F)];

/// What a template may call by name. The interpreter has it from outside and names none of it.
pub struct Library {
    pub filters: Table<Filter>,
    pub tests: Table<Test>,
    pub functions: Table<Function>,
}

fn find<F: Copy>(table: Table<F>, name: &str) -> Option<(&'static str, F)> {
    table.iter().find_map(|(names, function)| {
        names.iter().find(|known| **known == name).map(|known| (*known, *function))
    })
}

impl Library {
    pub fn filter(&self, name: &str) -> Option<Filter> {
        find(self.filters, name).map(|(_, filter)| filter)
    }

    pub fn test(&self, name: &str) -> Option<Test> {
        find(self.tests, name).map(|(_, test)| test)
    }

    pub fn function(&self, name: &str) -> Option<Function> {
        find(self.functions, name).map(|(_, function)| function)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Next,
    Break,
    Continue,
}

pub struct MacroState<'t> {
    pub code: &'t Macro,
    pub scope: usize,
}

pub struct LoopState<'t> {
    pub code: &'t Loop,
    /// The scope the loop is written in.
    pub scope: usize,
    pub rest: std::vec::IntoIter<Value>,
    /// Items are tested one by one until the length is needed.
    pub test: Option<&'t Expr>,
    pub length: Option<usize>,
    pub steps: usize,
    pub before: Option<Value>,
    pub current: Option<Value>,
    pub after: Option<Value>,
    pub changed: Option<Value>,
    pub depth: usize,
}

pub struct Renderer<'t> {
    pub library: &'static Library,
    variables: Variables,
    pub scopes: Scopes<'t>,
    pub namespaces: Vec<Dict>,
    pub macros: Vec<MacroState<'t>>,
    pub loops: Vec<LoopState<'t>>,
    pub cyclers: Vec<(Vec<Value>, usize)>,
    /// Separators, and whether they were asked for before.
    pub joiners: Vec<(Value, bool)>,
    /// What a filter without an operand works on.
    pub filtered: Value,
    pub out: String,
    pub brackets: Brackets<'t>,
    pub clock_s: i64,
}

impl<'t> Renderer<'t> {
    pub fn new(
        library: &'static Library,
        variables: Variables,
        brackets: Brackets<'t>,
        clock_s: i64,
    ) -> Renderer<'t> {
        Renderer {
            library,
            variables,
            scopes: Scopes::new(),
            namespaces: Vec::new(),
            macros: Vec::new(),
            loops: Vec::new(),
            cyclers: Vec::new(),
            joiners: Vec::new(),
            filtered: Value::None,
            out: String::new(),
            brackets,
            clock_s,
        }
    }

    pub fn lookup(&self, name: &str) -> Value {
        if let Some(value) = self.scopes.get(name).or_else(|| self.variables.get(name)) {
            return value.clone();
        }
        match find(self.library.functions, name) {
            Some((known, _)) => Value::Function(known),
            None => Value::undefined(format!("'{name}' is undefined")),
        }
    }

    /// str(); objects of the template have texts of their own.
    pub fn text_of(&self, value: &Value) -> Result<String> {
        match value {
            Value::Object(Object::Namespace, index) => {
                let mut parts = Vec::new();
                for (name, value) in self.namespaces[*index].pairs() {
                    parts.push(format!("{}: {}", repr(name)?, repr(value)?));
                }
                Ok(format!("<Namespace {{{}}}>", parts.join(", ")))
            }
            Value::Object(Object::Macro, index) => Ok(match &self.macros[*index].code.name {
                Some(name) => format!("<Macro '{name}'>"),
                None => "<Macro anonymous>".into(),
            }),
            Value::Object(Object::Loop, index) => self.loop_text(*index),
            Value::Function("dict") => Ok("<class 'dict'>".into()),
            Value::Function(name @ ("namespace" | "cycler" | "joiner")) => {
                let (first, rest) = name.split_at(1);
                Ok(format!("<class 'jinja2.utils.{}{rest}'>", first.to_uppercase()))
            }
            _ => str_of(value),
        }
    }

    pub fn write(&mut self, text: &str) -> Result<()> {
        spend_copy(text.len())?;
        reserve(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    pub fn write_value(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Str(text) => self.write(&text.text),
            _ => {
                let text = self.text_of(value)?;
                self.write(&text)
            }
        }
    }

    /// What `body` writes.
    pub fn capture(&mut self, body: impl FnOnce(&mut Self) -> Result<Flow>) -> Result<(Flow, String)> {
        let before = std::mem::take(&mut self.out);
        let flow = body(self);
        let text = std::mem::replace(&mut self.out, before);
        Ok((flow?, text))
    }

    pub fn in_scope<R>(&mut self, parent: usize, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        descend()?;
        let before = self.scopes.enter(parent);
        let result = work(self);
        self.scopes.leave(before);
        result
    }

    pub fn inner<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.in_scope(self.scopes.current(), work)
    }

    pub fn live(&self, index: usize) -> Result<&LoopState<'t>> {
        match self.loops.get(index) {
            Some(state) => Ok(state),
            None => fail("a loop variable is used after its loop"),
        }
    }

    /// len(loop).
    pub fn loop_length(&self, value: &Value) -> Result<Option<usize>> {
        let Value::Object(Object::Loop, index) = value else { return Ok(None) };
        match self.live(*index)?.length {
            Some(length) => Ok(Some(length)),
            None => fail("the length of a loop with a test is not known yet; ask loop.length"),
        }
    }

    pub fn loop_text(&self, index: usize) -> Result<String> {
        let length = self.loop_length(&Value::Object(Object::Loop, index))?.unwrap_or(0);
        Ok(format!("<LoopContext {}/{length}>", self.live(index)?.steps))
    }
}
