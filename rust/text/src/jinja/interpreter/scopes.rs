// SPDX-License-Identifier: Apache-2.0
//! Names in force: scopes see the ones around the place they are written in, as Jinja2's frames do.

use crate::jinja::values::value::Value;

struct Scope<'t> {
    names: Vec<(&'t str, Value)>,
    parent: Option<usize>,
    /// A macro keeps it.
    captured: bool,
}

pub struct Scopes<'t> {
    scopes: Vec<Scope<'t>>,
    current: usize,
}

impl<'t> Scopes<'t> {
    pub fn new() -> Scopes<'t> {
        Scopes { scopes: vec![Scope { names: Vec::new(), parent: None, captured: true }], current: 0 }
    }

    pub fn current(&self) -> usize {
        self.current
    }

    /// Enters a new scope inside `parent`; returns what `leave` wants.
    pub fn enter(&mut self, parent: usize) -> usize {
        let before = self.current;
        self.current = self.scopes.len();
        self.scopes.push(Scope { names: Vec::new(), parent: Some(parent), captured: false });
        before
    }

    pub fn leave(&mut self, before: usize) {
        let is_last = self.current + 1 == self.scopes.len();
        if is_last && !self.scopes[self.current].captured {
            self.scopes.pop();
        }
        self.current = before;
    }

    /// The current scope, which stays for the macro that asks.
    pub fn capture(&mut self) -> usize {
        self.scopes[self.current].captured = true;
        self.current
    }

    pub fn set(&mut self, name: &'t str, value: Value) {
        let names = &mut self.scopes[self.current].names;
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, place)) => *place = value,
            None => names.push((name, value)),
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        let mut at = Some(self.current);
        while let Some(index) = at {
            let scope = &self.scopes[index];
            if let Some((_, value)) = scope.names.iter().find(|(known, _)| *known == name) {
                return Some(value);
            }
            at = scope.parent;
        }
        None
    }
}
