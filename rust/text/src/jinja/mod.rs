// SPDX-License-Identifier: Apache-2.0
//! Jinja2 as transformers runs it, written for one purpose: chat templates. Its values are Python's, so what a template
//! writes is what Python would write; whatever cannot be matched is refused with an error. The grammar and the meaning of
//! filters and tests follow Jinja2 3.1. No template, however made, can do more than spend its budget.
//!
//! Each part uses only those before it: `error`, `values`, `grammar`, `interpreter`, `library`.

mod error;
mod grammar;
mod interpreter;
mod library;
#[cfg(test)]
mod tests;
mod values;

pub use error::{Error, Result};
pub use interpreter::state::{Brackets, Variables};
pub use values::text::casefold;
pub use values::value::{Items, Value};

use grammar::cursor::{Cursor, Known};
use grammar::lexer;
use grammar::statements::Parser;
use grammar::syntax::Statement;
use interpreter::state::{Library, Renderer};

static LIBRARY: Library = Library {
    filters: library::filters::FILTERS,
    tests: library::tests::TESTS,
    functions: library::functions::FUNCTIONS,
};

const KNOWN: Known =
    Known { is_filter: |name| LIBRARY.filter(name).is_some(), is_test: |name| LIBRARY.test(name).is_some() };

pub struct Template {
    body: Vec<Statement>,
    pub has_generation: bool,
}

impl Template {
    pub fn parse(source: &str) -> Result<Template> {
        let source = lexer::normalise(source);
        let mut parser = Parser::new(Cursor::new(lexer::tokens(&source)?, KNOWN));
        let body = parser.template().map_err(|error| error.or_line(parser.line()))?;
        Ok(Template { body, has_generation: parser.has_generation })
    }

    /// `clock_s`: what strftime_now takes for the time, in seconds since 1970.
    pub fn render(&self, variables: Variables, brackets: Brackets, clock_s: i64) -> Result<String> {
        Renderer::new(&LIBRARY, variables, brackets, clock_s).template(&self.body)
    }
}
