// SPDX-License-Identifier: Apache-2.0
//! Where the parser is among the tokens of a template.

use crate::jinja::error::{spend, Error, Result};
use crate::jinja::grammar::lexer::{Placed, Token};

const MAX_LINKS: usize = 5000;

/// Which filters and tests there are: another one is an error of the template as soon as it is read.
#[derive(Clone, Copy)]
pub struct Known {
    pub is_filter: fn(&str) -> bool,
    pub is_test: fn(&str) -> bool,
}

pub struct Cursor {
    tokens: Vec<Placed>,
    at: usize,
    pub known: Known,
    /// Inside an `if` unknown filters are errors only when they are reached.
    pub soft: usize,
    /// Nodes of the current tag that were chained without recursion; dropping a tree recurses.
    links: usize,
}

impl Cursor {
    pub fn new(tokens: Vec<Placed>, known: Known) -> Cursor {
        Cursor { tokens, at: 0, known, soft: 0, links: 0 }
    }

    pub fn begin_tag(&mut self) {
        self.links = 0;
    }

    pub fn line(&self) -> usize {
        self.tokens[self.at].line
    }

    pub fn token(&self) -> &Token {
        &self.tokens[self.at].token
    }

    pub fn ahead(&self) -> &Token {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].token
    }

    pub fn advance(&mut self) -> Token {
        let token = self.tokens[self.at].token.clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    pub fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(Error::at(message, self.line()))
    }

    pub fn is_operator(&self, operator: &str) -> bool {
        matches!(self.token(), Token::Operator(found) if *found == operator)
    }

    pub fn is_name(&self, name: &str) -> bool {
        matches!(self.token(), Token::Name(found) if found == name)
    }

    pub fn skip_operator(&mut self, operator: &str) -> bool {
        let found = self.is_operator(operator);
        if found {
            self.advance();
        }
        found
    }

    pub fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        if found {
            self.advance();
        }
        found
    }

    /// Counts one more node on top of a tree.
    pub fn link(&mut self) -> Result<()> {
        spend(1)?;
        self.links += 1;
        if self.links > MAX_LINKS {
            return self.fail("an expression is too long");
        }
        Ok(())
    }

    pub fn describe(&self) -> String {
        match self.token() {
            Token::Data(_) => "template text".into(),
            Token::BlockBegin => "{%".into(),
            Token::BlockEnd => "end of statement block".into(),
            Token::VariableBegin => "{{".into(),
            Token::VariableEnd => "end of print statement".into(),
            Token::Name(name) => name.clone(),
            Token::Str(text) => text.clone(),
            Token::Int(value) => value.to_string(),
            Token::Float(value) => value.to_string(),
            Token::Operator(operator) => (*operator).into(),
            Token::End => "end of template".into(),
        }
    }

    pub fn expect_operator(&mut self, operator: &str) -> Result<()> {
        if self.skip_operator(operator) {
            return Ok(());
        }
        self.fail(format!("expected token '{operator}', got '{}'", self.describe()))
    }

    pub fn expect_name(&mut self) -> Result<String> {
        if let Token::Name(name) = self.token() {
            let name = name.clone();
            self.advance();
            return Ok(name);
        }
        self.fail(format!("expected a name, got '{}'", self.describe()))
    }

    pub fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.skip_name(word) {
            return Ok(());
        }
        self.fail(format!("expected token '{word}', got '{}'", self.describe()))
    }

    pub fn expect_end_of_tag(&mut self, end: Token) -> Result<()> {
        if *self.token() == end {
            self.advance();
            return Ok(());
        }
        let what = if end == Token::BlockEnd { "end of statement block" } else { "end of print statement" };
        self.fail(format!("expected token '{what}', got '{}'", self.describe()))
    }
}
