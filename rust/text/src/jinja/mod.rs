// SPDX-License-Identifier: Apache-2.0
//! Jinja2 as transformers runs it, written for one purpose: chat templates. Its values are Python's, so what a template
//! writes is what Python would write; whatever cannot be matched is refused with an error. The grammar and the meaning of
//! filters and tests follow Jinja2 3.1. No template, however made, can do more than spend its budget.

mod arguments;
mod error;
mod evaluate;
mod expressions;
mod filters;
mod functions;
mod json;
mod lexer;
mod loops;
mod methods;
mod names;
mod number;
mod operators;
mod parser;
mod percent;
mod predicates;
mod render;
mod scopes;
mod spec;
mod string_methods;
mod syntax;
mod text;
mod value;

pub use error::{Error, Result};
pub use value::{Items, Value};

use std::collections::HashMap;
use std::rc::Rc;

use parser::Parser;
use render::Renderer;

/// What a template reads, by name.
pub type Variables = HashMap<Rc<str>, Value, ahash::RandomState>;

pub struct Template {
    body: Vec<syntax::Statement>,
    pub has_generation: bool,
}

/// What the output holds around the body of each `{% generation %}`.
pub struct Brackets<'b> {
    pub begin: &'b str,
    pub end: &'b str,
}

impl Template {
    pub fn parse(source: &str) -> Result<Template> {
        let source = lexer::normalise(source);
        let mut parser = Parser::new(lexer::tokens(&source)?);
        let body = parser.template().map_err(|error| error.or_line(parser.line()))?;
        Ok(Template { body, has_generation: parser.has_generation })
    }

    pub fn render(&self, variables: Variables, brackets: Brackets) -> Result<String> {
        Renderer::new(variables, brackets).template(&self.body)
    }
}
