// SPDX-License-Identifier: Apache-2.0
//! Jinja2's parser for expressions, with its precedences: `~` binds closer than `+`, `**` is left to right, filters and
//! tests bind closest.

use crate::jinja::error::{descend, spend, Error, Result};
use crate::jinja::grammar::cursor::Cursor;
use crate::jinja::grammar::lexer::Token;

use crate::jinja::grammar::syntax::{Call, Comparison, Constant, Expr, ExprKind, Filter};
use crate::jinja::values::number::Binary;

fn node(line: usize, kind: ExprKind) -> Expr {
    Expr { line, kind: Box::new(kind) }
}

impl Cursor {
    fn is_tuple_end(&self, words: &[&str]) -> bool {
        matches!(self.token(), Token::VariableEnd | Token::BlockEnd | Token::Operator(")"))
            || words.iter().any(|word| self.is_name(word))
    }

    /// An expression, or a tuple of them without parentheses.
    pub fn tuple(&mut self, conditionals: bool, end_words: &[&str]) -> Result<Expr> {
        let line = self.line();
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                self.expect_operator(",")?;
            }
            if self.is_tuple_end(end_words) {
                break;
            }
            items.push(if conditionals { self.expression()? } else { self.or()? });
            if !self.is_operator(",") {
                break;
            }
            is_tuple = true;
        }
        match items.pop() {
            Some(item) if !is_tuple => Ok(item),
            Some(item) => {
                items.push(item);
                Ok(node(line, ExprKind::Tuple(items)))
            }
            None => self.fail(format!("expected an expression, got '{}'", self.describe())),
        }
    }

    pub fn expression(&mut self) -> Result<Expr> {
        descend()?;
        spend(1)?;
        let mut line = self.line();
        let mut expr = self.or()?;
        while self.skip_name("if") {
            self.link()?;
            self.soft += 1;
            let test = self.or()?;
            let no = if self.skip_name("else") { Some(self.expression()?) } else { None };
            self.soft -= 1;
            expr = node(line, ExprKind::Conditional { test, yes: expr, no });
            line = self.line();
        }
        Ok(expr)
    }

    fn or(&mut self) -> Result<Expr> {
        let line = self.line();
        let mut left = self.and()?;
        while self.skip_name("or") {
            self.link()?;
            left = node(line, ExprKind::Or(left, self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr> {
        let line = self.line();
        let mut left = self.not()?;
        while self.skip_name("and") {
            self.link()?;
            left = node(line, ExprKind::And(left, self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr> {
        descend()?;
        let line = self.line();
        if self.skip_name("not") {
            return Ok(node(line, ExprKind::Not(self.not()?)));
        }
        self.compare()
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let comparison = match self.token() {
            Token::Operator("==") => Comparison::Equal,
            Token::Operator("!=") => Comparison::NotEqual,
            Token::Operator("<") => Comparison::Less,
            Token::Operator("<=") => Comparison::LessOrEqual,
            Token::Operator(">") => Comparison::Greater,
            Token::Operator(">=") => Comparison::GreaterOrEqual,
            Token::Name(name) if name == "in" => Comparison::In,
            Token::Name(name)
                if name == "not" && matches!(self.ahead(), Token::Name(next) if next == "in") =>
            {
                self.advance();
                Comparison::NotIn
            }
            _ => return None,
        };
        self.advance();
        Some(comparison)
    }

    fn compare(&mut self) -> Result<Expr> {
        let line = self.line();
        let left = self.sum()?;
        let mut rest = Vec::new();
        while let Some(comparison) = self.comparison() {
            rest.push((comparison, self.sum()?));
        }
        Ok(if rest.is_empty() { left } else { node(line, ExprKind::Compare(left, rest)) })
    }

    fn sum(&mut self) -> Result<Expr> {
        let line = self.line();
        let mut left = self.concat()?;
        loop {
            let operator = match self.token() {
                Token::Operator("+") => Binary::Add,
                Token::Operator("-") => Binary::Subtract,
                _ => return Ok(left),
            };
            self.advance();
            self.link()?;
            left = node(line, ExprKind::Binary(operator, left, self.concat()?));
        }
    }

    fn concat(&mut self) -> Result<Expr> {
        let line = self.line();
        let first = self.product()?;
        if !self.is_operator("~") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.skip_operator("~") {
            parts.push(self.product()?);
        }
        Ok(node(line, ExprKind::Concat(parts)))
    }

    fn product(&mut self) -> Result<Expr> {
        let line = self.line();
        let mut left = self.power()?;
        loop {
            let operator = match self.token() {
                Token::Operator("*") => Binary::Multiply,
                Token::Operator("/") => Binary::Divide,
                Token::Operator("//") => Binary::FloorDivide,
                Token::Operator("%") => Binary::Modulo,
                _ => return Ok(left),
            };
            self.advance();
            self.link()?;
            left = node(line, ExprKind::Binary(operator, left, self.power()?));
        }
    }

    fn power(&mut self) -> Result<Expr> {
        let line = self.line();
        let mut left = self.unary(true)?;
        while self.skip_operator("**") {
            self.link()?;
            left = node(line, ExprKind::Binary(Binary::Power, left, self.unary(true)?));
        }
        Ok(left)
    }

    fn unary(&mut self, with_filters: bool) -> Result<Expr> {
        descend()?;
        let line = self.line();
        let expr = if self.skip_operator("-") {
            node(line, ExprKind::Negative(self.unary(false)?))
        } else if self.skip_operator("+") {
            node(line, ExprKind::Positive(self.unary(false)?))
        } else {
            self.primary()?
        };
        let expr = self.postfix(expr)?;
        if with_filters {
            self.filters_and_tests(expr)
        } else {
            Ok(expr)
        }
    }

    fn primary(&mut self) -> Result<Expr> {
        let line = self.line();
        let kind = match self.token().clone() {
            Token::Name(name) => {
                self.advance();
                match name.as_str() {
                    "true" | "True" => ExprKind::Constant(Constant::Bool(true)),
                    "false" | "False" => ExprKind::Constant(Constant::Bool(false)),
                    "none" | "None" => ExprKind::Constant(Constant::None),
                    "self" | "super" => return Err(Error::at(format!("`{name}` is not supported"), line)),
                    _ => ExprKind::Name(name),
                }
            }
            Token::Str(mut text) => {
                self.advance();
                while let Token::Str(more) = self.token() {
                    text.push_str(more);
                    self.advance();
                }
                ExprKind::Constant(Constant::Str(text))
            }
            Token::Int(value) => {
                self.advance();
                ExprKind::Constant(Constant::Int(value))
            }
            Token::Float(value) => {
                self.advance();
                ExprKind::Constant(Constant::Float(value))
            }
            Token::Operator("(") => {
                self.advance();
                if self.skip_operator(")") {
                    return Ok(node(line, ExprKind::Tuple(Vec::new())));
                }
                let inner = self.tuple(true, &[])?;
                self.expect_operator(")")?;
                return Ok(inner);
            }
            Token::Operator("[") => {
                self.advance();
                let mut items = Vec::new();
                while !self.is_operator("]") {
                    if !items.is_empty() {
                        self.expect_operator(",")?;
                    }
                    if self.is_operator("]") {
                        break;
                    }
                    items.push(self.expression()?);
                }
                self.expect_operator("]")?;
                ExprKind::List(items)
            }
            Token::Operator("{") => self.dict()?,
            _ => return self.fail(format!("unexpected '{}'", self.describe())),
        };
        Ok(node(line, kind))
    }

    fn dict(&mut self) -> Result<ExprKind> {
        self.advance();
        let mut pairs = Vec::new();
        while !self.is_operator("}") {
            if !pairs.is_empty() {
                self.expect_operator(",")?;
            }
            if self.is_operator("}") {
                break;
            }
            let key = self.expression()?;
            self.expect_operator(":")?;
            pairs.push((key, self.expression()?));
        }
        self.expect_operator("}")?;
        Ok(ExprKind::Dict(pairs))
    }

    fn postfix(&mut self, mut expr: Expr) -> Result<Expr> {
        loop {
            expr = match self.token() {
                Token::Operator("." | "[") => self.subscript(expr)?,
                Token::Operator("(") => self.call(expr)?,
                _ => return Ok(expr),
            };
            self.link()?;
        }
    }

    fn filters_and_tests(&mut self, mut expr: Expr) -> Result<Expr> {
        loop {
            expr = match self.token() {
                Token::Operator("|") => self.more_filters(expr)?,
                Token::Name(name) if name == "is" => self.test(expr)?,
                Token::Operator("(") => self.call(expr)?,
                _ => return Ok(expr),
            };
            self.link()?;
        }
    }

    pub fn more_filters(&mut self, mut expr: Expr) -> Result<Expr> {
        while self.skip_operator("|") {
            self.link()?;
            let line = self.line();
            let filter = self.filter()?;
            expr = node(line, ExprKind::Filter(Some(expr), filter));
        }
        Ok(expr)
    }

    fn subscript(&mut self, of: Expr) -> Result<Expr> {
        let line = self.line();
        if self.skip_operator(".") {
            return match self.advance() {
                Token::Name(name) => Ok(node(line, ExprKind::Attribute(of, name))),
                Token::Int(index) => {
                    let index = node(line, ExprKind::Constant(Constant::Int(index)));
                    Ok(node(line, ExprKind::Item(of, index)))
                }
                _ => Err(Error::at("expected name or number", line)),
            };
        }
        self.expect_operator("[")?;
        if let Some(slice) = self.slice_start()? {
            return self.slice(of, slice, line);
        }
        let mut indices = Vec::new();
        loop {
            indices.push(self.expression()?);
            if self.is_operator(":") && indices.len() == 1 {
                let start = indices.pop();
                return self.slice(of, start, line);
            }
            if !self.skip_operator(",") {
                break;
            }
        }
        self.expect_operator("]")?;
        let index = match indices.pop() {
            Some(index) if indices.is_empty() => index,
            last => {
                indices.extend(last);
                node(line, ExprKind::Tuple(indices))
            }
        };
        Ok(node(line, ExprKind::Item(of, index)))
    }

    /// Some(None) for a slice that begins with its colon.
    fn slice_start(&self) -> Result<Option<Option<Expr>>> {
        if self.is_operator("]") {
            return self.fail("expected subscript expression");
        }
        Ok(self.is_operator(":").then_some(None))
    }

    fn slice(&mut self, of: Expr, start: Option<Expr>, line: usize) -> Result<Expr> {
        self.expect_operator(":")?;
        let bound = |parser: &mut Cursor| -> Result<Option<Expr>> {
            if parser.is_operator(":") || parser.is_operator("]") {
                return Ok(None);
            }
            parser.expression().map(Some)
        };
        let stop = bound(self)?;
        let step = if self.skip_operator(":") { bound(self)? } else { None };
        self.expect_operator("]")?;
        Ok(node(line, ExprKind::Slice { of, start, stop, step }))
    }

    fn call(&mut self, of: Expr) -> Result<Expr> {
        let line = self.line();
        let call = self.call_arguments()?;
        Ok(node(line, ExprKind::Call(of, call)))
    }

    pub fn call_arguments(&mut self) -> Result<Call> {
        let line = self.line();
        self.expect_operator("(")?;
        let mut call = Call::default();
        let mut first = true;
        while !self.is_operator(")") {
            if !first {
                self.expect_operator(",")?;
                if self.is_operator(")") {
                    break;
                }
            }
            first = false;
            let is_named = matches!(self.token(), Token::Name(_)) && *self.ahead() == Token::Operator("=");
            let allowed = if self.skip_operator("*") {
                let free = call.spread.is_none() && call.spread_named.is_none();
                call.spread = Some(self.expression()?);
                free
            } else if self.skip_operator("**") {
                let free = call.spread_named.is_none();
                call.spread_named = Some(self.expression()?);
                free
            } else if is_named {
                let name = self.expect_name()?;
                self.expect_operator("=")?;
                if call.named.iter().any(|(other, _)| *other == name) {
                    return self.fail(format!("keyword argument repeated: {name}"));
                }
                call.named.push((name, self.expression()?));
                call.spread_named.is_none()
            } else {
                call.positional.push(self.expression()?);
                call.spread.is_none() && call.spread_named.is_none() && call.named.is_empty()
            };
            if !allowed {
                return Err(Error::at("invalid syntax for function call expression", line));
            }
        }
        self.expect_operator(")")?;
        Ok(call)
    }

    fn test(&mut self, of: Expr) -> Result<Expr> {
        let line = self.line();
        self.advance();
        let negated = self.skip_name("not");
        let mut name = self.expect_name()?;
        while self.skip_operator(".") {
            name.push('.');
            name.push_str(&self.expect_name()?);
        }
        if self.soft == 0 && !(self.known.is_test)(&name) {
            return Err(Error::at(format!("no test named '{name}'"), line));
        }
        let call = match self.token() {
            Token::Operator("(") => self.call_arguments()?,
            Token::Name(next) if matches!(next.as_str(), "else" | "or" | "and") => Call::default(),
            Token::Name(next) if next == "is" => return self.fail("you cannot chain multiple tests with is"),
            Token::Name(_) | Token::Str(_) | Token::Int(_) | Token::Float(_) | Token::Operator("[" | "{") => {
                let argument = self.primary()?;
                let argument = self.postfix(argument)?;
                Call { positional: vec![argument], ..Call::default() }
            }
            _ => Call::default(),
        };
        let test = node(line, ExprKind::Test { of, name, call });
        Ok(if negated { node(line, ExprKind::Not(test)) } else { test })
    }

    pub fn filter(&mut self) -> Result<Filter> {
        let line = self.line();
        let mut name = self.expect_name()?;
        while self.skip_operator(".") {
            name.push('.');
            name.push_str(&self.expect_name()?);
        }
        if self.soft == 0 && !(self.known.is_filter)(&name) {
            return Err(Error::at(format!("no filter named '{name}'"), line));
        }
        let call = if self.is_operator("(") { self.call_arguments()? } else { Default::default() };
        Ok(Filter { name, call, line })
    }
}
