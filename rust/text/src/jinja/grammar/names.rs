// SPDX-License-Identifier: Apache-2.0 Whether a body reads a name: Jinja2 gives `loop`, `caller`,
// `varargs` and `kwargs` only to bodies that do.

use crate::jinja::grammar::syntax::{Call, Expr, ExprKind, Statement, StatementKind};

fn call_uses(call: &Call, name: &str) -> bool {
    call.positional.iter().any(|expr| expr_uses(expr, name))
        || call.named.iter().any(|(_, expr)| expr_uses(expr, name))
        || call.spread.iter().chain(&call.spread_named).any(|expr| expr_uses(expr, name))
}

fn expr_uses(expr: &Expr, name: &str) -> bool {
    let uses = |expr: &Expr| expr_uses(expr, name);
    match &*expr.kind {
        ExprKind::Constant(_) => false,
        ExprKind::Name(found) => found == name,
        ExprKind::List(items) | ExprKind::Tuple(items) | ExprKind::Concat(items) => items.iter().any(uses),
        ExprKind::Dict(pairs) => pairs.iter().any(|(key, value)| uses(key) || uses(value)),
        ExprKind::Negative(inner) | ExprKind::Positive(inner) | ExprKind::Not(inner) => uses(inner),
        ExprKind::And(left, right) | ExprKind::Or(left, right) | ExprKind::Binary(_, left, right) => {
            uses(left) || uses(right)
        }
        ExprKind::Compare(left, rest) => uses(left) || rest.iter().any(|(_, right)| uses(right)),
        ExprKind::Conditional { test, yes, no } => uses(test) || uses(yes) || no.iter().any(uses),
        ExprKind::Attribute(of, _) => uses(of),
        ExprKind::Item(of, index) => uses(of) || uses(index),
        ExprKind::Slice { of, start, stop, step } => {
            uses(of) || start.iter().chain(stop).chain(step).any(uses)
        }
        ExprKind::Call(of, call) => uses(of) || call_uses(call, name),
        ExprKind::Filter(of, filter) => of.iter().any(uses) || call_uses(&filter.call, name),
        ExprKind::Test { of, call, .. } => uses(of) || call_uses(call, name),
    }
}

pub fn uses_name(body: &[Statement], name: &str) -> bool {
    body.iter().any(|statement| statement_uses(&statement.kind, name))
}

fn statement_uses(statement: &StatementKind, name: &str) -> bool {
    let uses = |expr: &Expr| expr_uses(expr, name);
    let body_uses = |body: &[Statement]| uses_name(body, name);
    match statement {
        StatementKind::Data(_) | StatementKind::Break | StatementKind::Continue | StatementKind::Block(_) => {
            false
        }
        StatementKind::Output(expr) | StatementKind::Set(_, expr) => uses(expr),
        StatementKind::If { branches, otherwise } => {
            branches.iter().any(|(test, body)| uses(test) || body_uses(body)) || body_uses(otherwise)
        }
        StatementKind::For(inner) => {
            uses(&inner.over)
                || inner.test.iter().any(uses)
                || body_uses(&inner.body)
                || body_uses(&inner.otherwise)
        }
        StatementKind::SetBlock { filter, body, .. } => filter.iter().any(uses) || body_uses(body),
        StatementKind::With { bindings, body } => {
            bindings.iter().any(|(_, value)| uses(value)) || body_uses(body)
        }
        StatementKind::Macro(function) => function.defaults.iter().any(uses) || body_uses(&function.body),
        StatementKind::CallBlock { call, caller } => {
            uses(call) || caller.defaults.iter().any(uses) || body_uses(&caller.body)
        }
        StatementKind::FilterBlock { filter, body } => uses(filter) || body_uses(body),
        StatementKind::Scope(body) | StatementKind::Generation(body) => body_uses(body),
    }
}
