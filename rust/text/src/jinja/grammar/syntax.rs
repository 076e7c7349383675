// SPDX-License-Identifier: Apache-2.0
//! The tree of a template, as Jinja2's nodes.

use crate::jinja::values::number::Binary;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

#[derive(Debug)]
pub enum Constant {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(String),
}

#[derive(Debug, Default)]
pub struct Call {
    pub positional: Vec<Expr>,
    pub named: Vec<(String, Expr)>,
    pub spread: Option<Expr>,
    pub spread_named: Option<Expr>,
}

#[derive(Debug)]
pub struct Filter {
    pub name: String,
    pub call: Call,
    pub line: usize,
}

#[derive(Debug)]
pub struct Expr {
    pub line: usize,
    pub kind: Box<ExprKind>,
}

#[derive(Debug)]
pub enum ExprKind {
    Constant(Constant),
    Name(String),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Negative(Expr),
    Positive(Expr),
    Not(Expr),
    And(Expr, Expr),
    Or(Expr, Expr),
    Binary(Binary, Expr, Expr),
    Concat(Vec<Expr>),
    Compare(Expr, Vec<(Comparison, Expr)>),
    Conditional {
        test: Expr,
        yes: Expr,
        no: Option<Expr>,
    },
    Attribute(Expr, String),
    Item(Expr, Expr),
    Slice {
        of: Expr,
        start: Option<Expr>,
        stop: Option<Expr>,
        step: Option<Expr>,
    },
    Call(Expr, Call),
    /// None: the body of a filter block or a set block.
    Filter(Option<Expr>, Filter),
    Test {
        of: Expr,
        name: String,
        call: Call,
    },
}

#[derive(Debug)]
pub enum Target {
    Name(String),
    Attribute(String, String),
    Tuple(Vec<Target>),
}

#[derive(Debug)]
pub struct Macro {
    pub name: Option<String>,
    pub parameters: Vec<String>,
    /// Of the last parameters.
    pub defaults: Vec<Expr>,
    pub body: Vec<Statement>,
    pub uses_caller: bool,
    pub uses_varargs: bool,
    pub uses_kwargs: bool,
}

#[derive(Debug)]
pub struct Loop {
    pub target: Target,
    pub over: Expr,
    pub test: Option<Expr>,
    pub recursive: bool,
    pub uses_loop: bool,
    pub body: Vec<Statement>,
    pub otherwise: Vec<Statement>,
}

#[derive(Debug)]
pub struct Statement {
    pub line: usize,
    pub kind: StatementKind,
}

#[derive(Debug)]
pub enum StatementKind {
    Data(String),
    Output(Expr),
    If {
        branches: Vec<(Expr, Vec<Statement>)>,
        otherwise: Vec<Statement>,
    },
    For(Box<Loop>),
    Set(Target, Expr),
    SetBlock {
        target: Target,
        filter: Option<Expr>,
        body: Vec<Statement>,
    },
    With {
        bindings: Vec<(Target, Expr)>,
        body: Vec<Statement>,
    },
    Macro(Box<Macro>),
    CallBlock {
        call: Expr,
        caller: Box<Macro>,
    },
    FilterBlock {
        filter: Expr,
        body: Vec<Statement>,
    },
    /// `{% autoescape false %}`: a scope.
    Scope(Vec<Statement>),
    Block(Vec<Statement>),
    Generation(Vec<Statement>),
    Break,
    Continue,
}
