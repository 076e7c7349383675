// SPDX-License-Identifier: Apache-2.0
//! Jinja2's parser for statements; expressions are in expressions.rs. Includes, imports and inheritance need other
//! templates, which a chat template has none of: they are refused.

use super::error::{descend, spend, Error, Result};
use super::lexer::{Placed, Token};
use super::names::uses_name;
use super::syntax::{Expr, ExprKind, Filter, Loop, Macro, Statement, StatementKind, Target};

const MAX_LINKS: usize = 5000;

pub struct Parser {
    tokens: Vec<Placed>,
    at: usize,
    /// Inside an `if` unknown filters are errors only when they are reached.
    pub soft: usize,
    /// Nodes of the current tag that were chained without recursion; dropping a tree recurses.
    links: usize,
    /// Loops that `break` and `continue` can leave.
    loops: usize,
    /// Tags that are read, outermost first, with their lines.
    open: Vec<(String, usize)>,
    pub has_generation: bool,
}

impl Parser {
    pub fn new(tokens: Vec<Placed>) -> Parser {
        Parser { tokens, at: 0, soft: 0, links: 0, loops: 0, open: Vec::new(), has_generation: false }
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

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.skip_name(word) {
            return Ok(());
        }
        self.fail(format!("expected token '{word}', got '{}'", self.describe()))
    }

    fn expect_end_of_tag(&mut self, end: Token) -> Result<()> {
        if *self.token() == end {
            self.advance();
            return Ok(());
        }
        let what = if end == Token::BlockEnd { "end of statement block" } else { "end of print statement" };
        self.fail(format!("expected token '{what}', got '{}'", self.describe()))
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
            let line = self.line();
            self.links = 0;
            match self.advance() {
                Token::Data(text) => body.push(Statement { line, kind: StatementKind::Data(text) }),
                Token::VariableBegin => {
                    let expr = self.tuple(true, &[])?;
                    self.expect_end_of_tag(Token::VariableEnd)?;
                    body.push(Statement { line, kind: StatementKind::Output(expr) });
                }
                Token::BlockBegin => {
                    if let Token::Name(name) = self.token() {
                        if ends.contains(&name.as_str()) {
                            let name = name.clone();
                            self.advance();
                            return Ok((body, name));
                        }
                    }
                    self.statement(&mut body)?;
                    self.expect_end_of_tag(Token::BlockEnd)?;
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
        self.skip_operator(":");
        self.expect_end_of_tag(Token::BlockEnd)?;
        self.body(ends)
    }

    /// A body that `break` cannot leave: Python runs it as a function of its own.
    fn function_block(&mut self, end: &str) -> Result<Vec<Statement>> {
        let loops = std::mem::take(&mut self.loops);
        let soft = std::mem::take(&mut self.soft);
        let body = self.block(&[end]);
        self.loops = loops;
        self.soft = soft;
        Ok(body?.0)
    }

    fn statement(&mut self, body: &mut Vec<Statement>) -> Result<()> {
        let line = self.line();
        let Token::Name(tag) = self.token().clone() else {
            return self.fail("tag name expected");
        };
        self.advance();
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
                let name = self.expect_name()?;
                let function = self.function(Some(name), "endmacro")?;
                StatementKind::Macro(Box::new(function))
            }
            "call" => self.call_block()?,
            "filter" => {
                let name_line = self.line();
                let filter = self.filter()?;
                let filter = Expr { line: name_line, kind: Box::new(ExprKind::Filter(None, filter)) };
                let filter = self.more_filters(filter)?;
                StatementKind::FilterBlock { filter, body: self.block(&["endfilter"])?.0 }
            }
            "generation" => {
                self.has_generation = true;
                StatementKind::Generation(self.function_block("endgeneration")?)
            }
            "print" => loop {
                let expr = self.expression()?;
                body.push(Statement { line, kind: StatementKind::Output(expr) });
                if !self.skip_operator(",") {
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
                if !self.skip_name("false") && !self.skip_name("False") {
                    return self.fail("chat templates are not escaped: only `autoescape false` is possible");
                }
                StatementKind::Scope(self.block(&["endautoescape"])?.0)
            }
            "block" => {
                let name = self.expect_name()?;
                if self.is_name("scoped") || self.is_name("required") {
                    return self.fail("scoped and required blocks are not supported");
                }
                let inner = self.function_block("endblock")?;
                self.skip_name(&name);
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
        self.soft += 1;
        let mut branches = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let test = self.tuple(false, &[])?;
            let (body, end) = self.block(&["elif", "else", "endif"])?;
            branches.push((test, body));
            if end == "elif" {
                continue;
            }
            if end == "else" {
                otherwise = self.block(&["endif"])?.0;
            }
            self.soft -= 1;
            return Ok(StatementKind::If { branches, otherwise });
        }
    }

    fn for_statement(&mut self) -> Result<StatementKind> {
        let target = self.target(&["in"])?;
        if target_has(&target, "loop") {
            return self.fail("can't assign to special loop variable in for-loop target");
        }
        self.expect_word("in")?;
        let over = self.tuple(false, &["recursive"])?;
        let test = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let recursive = self.skip_name("recursive");
        self.loops += 1;
        let (body, end) = self.block(&["endfor", "else"])?;
        self.loops -= 1;
        let otherwise = if end == "else" { self.block(&["endfor"])?.0 } else { Vec::new() };
        let uses_loop = recursive || uses_name(&body, "loop");
        Ok(StatementKind::For(Box::new(Loop { target, over, test, recursive, uses_loop, body, otherwise })))
    }

    fn set_statement(&mut self) -> Result<StatementKind> {
        let target = self.target(&[])?;
        if self.skip_operator("=") {
            return Ok(StatementKind::Set(target, self.tuple(true, &[])?));
        }
        let mut filter = None;
        while self.skip_operator("|") {
            let line = self.line();
            let next = self.filter()?;
            filter = Some(Expr { line, kind: Box::new(ExprKind::Filter(filter, next)) });
        }
        Ok(StatementKind::SetBlock { target, filter, body: self.block(&["endset"])?.0 })
    }

    fn with_statement(&mut self) -> Result<StatementKind> {
        let mut bindings = Vec::new();
        while *self.token() != Token::BlockEnd {
            if !bindings.is_empty() {
                self.expect_operator(",")?;
            }
            let target = self.target(&[])?;
            self.expect_operator("=")?;
            bindings.push((target, self.expression()?));
        }
        Ok(StatementKind::With { bindings, body: self.block(&["endwith"])?.0 })
    }

    fn call_block(&mut self) -> Result<StatementKind> {
        let line = self.line();
        let mut caller = Macro::anonymous();
        if self.is_operator("(") {
            self.signature(&mut caller)?;
        }
        let call = self.expression()?;
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
        self.expect_operator("(")?;
        while !self.is_operator(")") {
            if !function.parameters.is_empty() {
                self.expect_operator(",")?;
            }
            let name = self.assignable_name()?;
            if function.parameters.contains(&name) {
                return self.fail(format!("duplicate argument '{name}'"));
            }
            function.parameters.push(name);
            if self.skip_operator("=") {
                function.defaults.push(self.expression()?);
            } else if !function.defaults.is_empty() {
                return self.fail("non-default argument follows default argument");
            }
        }
        self.expect_operator(")")
    }

    fn assignable_name(&mut self) -> Result<String> {
        let name = self.expect_name()?;
        if matches!(name.as_str(), "true" | "false" | "none" | "True" | "False" | "None") {
            return self.fail(format!("can't assign to '{name}'"));
        }
        Ok(name)
    }

    fn single_target(&mut self) -> Result<Target> {
        if self.skip_operator("(") {
            let target = self.target(&[])?;
            self.expect_operator(")")?;
            return Ok(target);
        }
        let name = self.assignable_name()?;
        if self.skip_operator(".") {
            return Ok(Target::Attribute(name, self.expect_name()?));
        }
        Ok(Target::Name(name))
    }

    /// One name, or a tuple of them, up to one of the words `ends`.
    fn target(&mut self, ends: &[&str]) -> Result<Target> {
        let first = self.single_target()?;
        if !self.is_operator(",") {
            return Ok(first);
        }
        let mut targets = vec![first];
        while self.skip_operator(",") {
            let is_end = ends.iter().any(|end| self.is_name(end));
            if is_end || matches!(self.token(), Token::BlockEnd | Token::Operator(")" | "=")) {
                break;
            }
            targets.push(self.single_target()?);
        }
        Ok(Target::Tuple(targets))
    }

    pub fn filter(&mut self) -> Result<Filter> {
        let line = self.line();
        let mut name = self.expect_name()?;
        while self.skip_operator(".") {
            name.push('.');
            name.push_str(&self.expect_name()?);
        }
        if self.soft == 0 && !super::filters::is_known(&name) {
            return Err(Error::at(format!("no filter named '{name}'"), line));
        }
        let call = if self.is_operator("(") { self.call_arguments()? } else { Default::default() };
        Ok(Filter { name, call, line })
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
