// SPDX-License-Identifier: Apache-2.0
//! Jinja2's parser for statements; expressions are in expressions.rs. Includes, imports and inheritance need other
//! templates, which a chat template has none of: they are refused.

use crate::jinja::error::{descend, spend, Error, Result};
use crate::jinja::grammar::cursor::Cursor;
use crate::jinja::grammar::lexer::Token;
use crate::jinja::grammar::names::uses_name;
use crate::jinja::grammar::syntax::{Expr, ExprKind, Loop, Macro, Statement, StatementKind, Target};

pub struct Parser {
    cursor: Cursor,
    /// Loops that `break` and `continue` can leave.
    loops: usize,
    /// Tags that are read, outermost first, with their lines.
    open: Vec<(String, usize)>,
    pub has_generation: bool,
}

impl Parser {
    pub fn new(cursor: Cursor) -> Parser {
        Parser { cursor, loops: 0, open: Vec::new(), has_generation: false }
    }

    /// Of the token that is read next.
    pub fn line(&self) -> usize {
        self.cursor.line()
    }

    pub fn template(&mut self) -> Result<Vec<Statement>> {
        let (body, _) = self.body(&[])?;
        Ok(body)
    }

    /// Statements up to one of the tags `ends`, whose name is consumed and returned.
    fn body(&mut self, ends: &[&str]) -> Result<(Vec<Statement>, String)> {
        descend()?;
        let mut body = Vec::new();
        loop {
            spend(1)?;
            let line = self.cursor.line();
            self.cursor.begin_tag();
            match self.cursor.advance() {
                Token::Data(text) => body.push(Statement { line, kind: StatementKind::Data(text) }),
                Token::VariableBegin => {
                    let expr = self.cursor.tuple(true, &[])?;
                    self.cursor.expect_end_of_tag(Token::VariableEnd)?;
                    body.push(Statement { line, kind: StatementKind::Output(expr) });
                }
                Token::BlockBegin => {
                    if let Token::Name(name) = self.cursor.token() {
                        if ends.contains(&name.as_str()) {
                            let name = name.clone();
                            self.cursor.advance();
                            return Ok((body, name));
                        }
                    }
                    self.statement(&mut body)?;
                    self.cursor.expect_end_of_tag(Token::BlockEnd)?;
                }
                _ => match self.open.last() {
                    None => return Ok((body, String::new())),
                    Some((tag, line)) => {
                        let message = format!("`{{% {tag} %}}` is not closed: `{{% end{tag} %}}` is missing");
                        return Err(Error::at(message, *line));
                    }
                },
            }
        }
    }

    /// The rest of the opening tag, then the statements up to one of `ends`.
    fn block(&mut self, ends: &[&str]) -> Result<(Vec<Statement>, String)> {
        self.cursor.skip_operator(":");
        self.cursor.expect_end_of_tag(Token::BlockEnd)?;
        self.body(ends)
    }

    /// A body that `break` cannot leave: Python runs it as a function of its own.
    fn function_block(&mut self, end: &str) -> Result<Vec<Statement>> {
        let loops = std::mem::take(&mut self.loops);
        let soft = std::mem::take(&mut self.cursor.soft);
        let body = self.block(&[end]);
        self.loops = loops;
        self.cursor.soft = soft;
        Ok(body?.0)
    }

    fn statement(&mut self, body: &mut Vec<Statement>) -> Result<()> {
        let line = self.cursor.line();
        let Token::Name(tag) = self.cursor.token().clone() else {
            return self.cursor.fail("tag name expected");
        };
        self.cursor.advance();
        self.open.push((tag, line));
        self.open_statement(body)?;
        self.open.pop();
        Ok(())
    }

    /// What follows the name of the innermost open tag.
    fn open_statement(&mut self, body: &mut Vec<Statement>) -> Result<()> {
        let (tag, line) = self.open.last().cloned().unwrap_or_default();
        let kind = match tag.as_str() {
            "if" => self.if_statement()?,
            "for" => self.for_statement()?,
            "set" => self.set_statement()?,
            "with" => self.with_statement()?,
            "macro" => {
                let name = self.cursor.expect_name()?;
                let function = self.function(Some(name), "endmacro")?;
                StatementKind::Macro(Box::new(function))
            }
            "call" => self.call_block()?,
            "filter" => {
                let name_line = self.cursor.line();
                let filter = self.cursor.filter()?;
                let filter = Expr { line: name_line, kind: Box::new(ExprKind::Filter(None, filter)) };
                let filter = self.cursor.more_filters(filter)?;
                StatementKind::FilterBlock { filter, body: self.block(&["endfilter"])?.0 }
            }
            "generation" => {
                self.has_generation = true;
                StatementKind::Generation(self.function_block("endgeneration")?)
            }
            "print" => loop {
                let expr = self.cursor.expression()?;
                body.push(Statement { line, kind: StatementKind::Output(expr) });
                if !self.cursor.skip_operator(",") {
                    return Ok(());
                }
            },
            "break" | "continue" => {
                if self.loops == 0 {
                    return Err(Error::at(format!("`{tag}` outside of a loop"), line));
                }
                if tag == "break" {
                    StatementKind::Break
                } else {
                    StatementKind::Continue
                }
            }
            "autoescape" => {
                if !self.cursor.skip_name("false") && !self.cursor.skip_name("False") {
                    return self
                        .cursor
                        .fail("chat templates are not escaped: only `autoescape false` is possible");
                }
                StatementKind::Scope(self.block(&["endautoescape"])?.0)
            }
            "block" => {
                let name = self.cursor.expect_name()?;
                if self.cursor.is_name("scoped") || self.cursor.is_name("required") {
                    return self.cursor.fail("scoped and required blocks are not supported");
                }
                let inner = self.function_block("endblock")?;
                self.cursor.skip_name(&name);
                StatementKind::Block(inner)
            }
            "include" | "import" | "from" | "extends" => {
                return Err(Error::at(
                    format!("`{tag}`: a chat template has no other templates to use"),
                    line,
                ))
            }
            _ => return Err(self.unknown_tag(&tag, line)),
        };
        body.push(Statement { line, kind });
        Ok(())
    }

    fn unknown_tag(&self, tag: &str, line: usize) -> Error {
        let around = self.open.iter().rev().nth(1);
        let message = match (tag.starts_with("end") || matches!(tag, "else" | "elif"), around) {
            (false, _) => format!("unknown tag `{tag}`"),
            (true, None) => format!("`{{% {tag} %}}` closes nothing: no tag is open"),
            (true, Some((open, at))) => format!(
                "`{{% {tag} %}}` does not fit `{{% {open} %}}` of line {at}, which needs `{{% end{open} %}}` first"
            ),
        };
        Error::at(message, line)
    }

    fn if_statement(&mut self) -> Result<StatementKind> {
        self.cursor.soft += 1;
        let mut branches = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let test = self.cursor.tuple(false, &[])?;
            let (body, end) = self.block(&["elif", "else", "endif"])?;
            branches.push((test, body));
            if end == "elif" {
                continue;
            }
            if end == "else" {
                otherwise = self.block(&["endif"])?.0;
            }
            self.cursor.soft -= 1;
            return Ok(StatementKind::If { branches, otherwise });
        }
    }

    fn for_statement(&mut self) -> Result<StatementKind> {
        let target = self.target(&["in"])?;
        if target_has(&target, "loop") {
            return self.cursor.fail("can't assign to special loop variable in for-loop target");
        }
        self.cursor.expect_word("in")?;
        let over = self.cursor.tuple(false, &["recursive"])?;
        let test = if self.cursor.skip_name("if") { Some(self.cursor.expression()?) } else { None };
        let recursive = self.cursor.skip_name("recursive");
        self.loops += 1;
        let (body, end) = self.block(&["endfor", "else"])?;
        self.loops -= 1;
        let otherwise = if end == "else" { self.block(&["endfor"])?.0 } else { Vec::new() };
        let uses_loop = recursive || uses_name(&body, "loop");
        Ok(StatementKind::For(Box::new(Loop { target, over, test, recursive, uses_loop, body, otherwise })))
    }

    fn set_statement(&mut self) -> Result<StatementKind> {
        let target = self.target(&[])?;
        if self.cursor.skip_operator("=") {
            return Ok(StatementKind::Set(target, self.cursor.tuple(true, &[])?));
        }
        let mut filter = None;
        while self.cursor.skip_operator("|") {
            let line = self.cursor.line();
            let next = self.cursor.filter()?;
            filter = Some(Expr { line, kind: Box::new(ExprKind::Filter(filter, next)) });
        }
        Ok(StatementKind::SetBlock { target, filter, body: self.block(&["endset"])?.0 })
    }

    fn with_statement(&mut self) -> Result<StatementKind> {
        let mut bindings = Vec::new();
        while *self.cursor.token() != Token::BlockEnd {
            if !bindings.is_empty() {
                self.cursor.expect_operator(",")?;
            }
            let target = self.target(&[])?;
            self.cursor.expect_operator("=")?;
            bindings.push((target, self.cursor.expression()?));
        }
        Ok(StatementKind::With { bindings, body: self.block(&["endwith"])?.0 })
    }

    fn call_block(&mut self) -> Result<StatementKind> {
        let line = self.cursor.line();
        let mut caller = Macro::anonymous();
        if self.cursor.is_operator("(") {
            self.signature(&mut caller)?;
        }
        let call = self.cursor.expression()?;
        if !matches!(*call.kind, ExprKind::Call(..)) {
            return Err(Error::at("expected call", line));
        }
        caller.body = self.function_block("endcall")?;
        caller.note_special_names()?;
        Ok(StatementKind::CallBlock { call, caller: Box::new(caller) })
    }

    fn function(&mut self, name: Option<String>, end: &str) -> Result<Macro> {
        let mut function = Macro { name, ..Macro::anonymous() };
        self.signature(&mut function)?;
        function.body = self.function_block(end)?;
        function.note_special_names()?;
        Ok(function)
    }

    fn signature(&mut self, function: &mut Macro) -> Result<()> {
        self.cursor.expect_operator("(")?;
        while !self.cursor.is_operator(")") {
            if !function.parameters.is_empty() {
                self.cursor.expect_operator(",")?;
            }
            let name = self.assignable_name()?;
            if function.parameters.contains(&name) {
                return self.cursor.fail(format!("duplicate argument '{name}'"));
            }
            function.parameters.push(name);
            if self.cursor.skip_operator("=") {
                function.defaults.push(self.cursor.expression()?);
            } else if !function.defaults.is_empty() {
                return self.cursor.fail("non-default argument follows default argument");
            }
        }
        self.cursor.expect_operator(")")
    }

    fn assignable_name(&mut self) -> Result<String> {
        let name = self.cursor.expect_name()?;
        if matches!(name.as_str(), "true" | "false" | "none" | "True" | "False" | "None") {
            return self.cursor.fail(format!("can't assign to '{name}'"));
        }
        Ok(name)
    }

    fn single_target(&mut self) -> Result<Target> {
        if self.cursor.skip_operator("(") {
            let target = self.target(&[])?;
            self.cursor.expect_operator(")")?;
            return Ok(target);
        }
        let name = self.assignable_name()?;
        if self.cursor.skip_operator(".") {
            return Ok(Target::Attribute(name, self.cursor.expect_name()?));
        }
        Ok(Target::Name(name))
    }

    /// One name, or a tuple of them, up to one of the words `ends`.
    fn target(&mut self, ends: &[&str]) -> Result<Target> {
        let first = self.single_target()?;
        if !self.cursor.is_operator(",") {
            return Ok(first);
        }
        let mut targets = vec![first];
        while self.cursor.skip_operator(",") {
            let is_end = ends.iter().any(|end| self.cursor.is_name(end));
            if is_end || matches!(self.cursor.token(), Token::BlockEnd | Token::Operator(")" | "=")) {
                break;
            }
            targets.push(self.single_target()?);
        }
        Ok(Target::Tuple(targets))
    }
}

fn target_has(target: &Target, wanted: &str) -> bool {
    match target {
        Target::Name(name) => name == wanted,
        Target::Attribute(..) => false,
        Target::Tuple(targets) => targets.iter().any(|target| target_has(target, wanted)),
    }
}

impl Macro {
    fn anonymous() -> Macro {
        Macro {
            name: None,
            parameters: Vec::new(),
            defaults: Vec::new(),
            body: Vec::new(),
            uses_caller: false,
            uses_varargs: false,
            uses_kwargs: false,
        }
    }

    fn note_special_names(&mut self) -> Result<()> {
        let takes = |name: &str| self.parameters.iter().any(|parameter| parameter == name);
        let with_default = self.parameters.len() - self.defaults.len();
        if self.parameters.iter().take(with_default).any(|name| name == "caller")
            && uses_name(&self.body, "caller")
        {
            return Err(Error::new("the special \"caller\" argument must be omitted or be given a default"));
        }
        let uses = |name: &str| !takes(name) && uses_name(&self.body, name);
        (self.uses_caller, self.uses_varargs, self.uses_kwargs) =
            (uses("caller"), uses("varargs"), uses("kwargs"));
        Ok(())
    }
}
