// SPDX-License-Identifier: Apache-2.0
//! `for` loops and what their `loop` variable tells.

use crate::jinja::error::{fail, spend, Result};
use crate::jinja::grammar::syntax::Loop;
use crate::jinja::interpreter::state::{Flow, LoopState, Renderer};
use crate::jinja::values::arguments::Arguments;
use crate::jinja::values::order::equal;
use crate::jinja::values::value::{Object, Value};

const FIELDS: &[&str] = &[
    "index",
    "index0",
    "revindex",
    "revindex0",
    "first",
    "last",
    "length",
    "depth",
    "depth0",
    "previtem",
    "nextitem",
];
const METHODS: &[&str] = &["cycle", "changed"];

impl<'t> Renderer<'t> {
    pub fn run_loop(&mut self, code: &'t Loop, over: Value, scope: usize, depth: usize) -> Result<Flow> {
        let items = over.items()?;
        let length = code.test.is_none().then_some(items.len());
        let index = self.loops.len();
        self.loops.push(LoopState {
            code,
            scope,
            rest: items.into_iter(),
            test: code.test.as_ref(),
            length,
            steps: 0,
            before: None,
            current: None,
            after: None,
            changed: None,
            depth,
        });
        let result = self.run_steps(index);
        // Inner loops are done; what still names one of them finds no more of it.
        self.loops.truncate(index);
        let (flow, completed) = result?;
        if flow == Flow::Next && !completed && !code.otherwise.is_empty() {
            return self.in_scope(scope, |renderer| renderer.body(&code.otherwise));
        }
        Ok(Flow::Next)
    }

    /// Whether an iteration reached its end: as in Jinja2, `else` runs when none did.
    fn run_steps(&mut self, index: usize) -> Result<(Flow, bool)> {
        let (code, scope) = (self.loops[index].code, self.loops[index].scope);
        let mut completed = false;
        while let Some(item) = self.next_item(index)? {
            spend(1)?;
            let state = &mut self.loops[index];
            state.steps += 1;
            state.before = state.current.replace(item.clone());
            let flow = self.in_scope(scope, |renderer| {
                if code.uses_loop {
                    renderer.scopes.set("loop", Value::Object(Object::Loop, index));
                }
                renderer.assign(&code.target, item)?;
                renderer.body(&code.body)
            })?;
            match flow {
                Flow::Next => completed = true,
                Flow::Continue => {}
                Flow::Break => break,
            }
        }
        Ok((Flow::Next, completed))
    }

    fn next_item(&mut self, index: usize) -> Result<Option<Value>> {
        if let Some(item) = self.loops[index].after.take() {
            return Ok(Some(item));
        }
        self.pull(index)
    }

    /// The next item that passes the loop's test.
    fn pull(&mut self, index: usize) -> Result<Option<Value>> {
        while let Some(item) = self.loops[index].rest.next() {
            let state = &self.loops[index];
            let (code, scope) = (state.code, state.scope);
            let Some(test) = state.test else { return Ok(Some(item)) };
            let passes = self.in_scope(scope, |renderer| {
                renderer.assign(&code.target, item.clone())?;
                renderer.holds(test)
            })?;
            if passes {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    fn peek(&mut self, index: usize) -> Result<Option<Value>> {
        if self.loops[index].after.is_none() {
            self.loops[index].after = self.pull(index)?;
        }
        Ok(self.loops[index].after.clone())
    }

    fn length(&mut self, index: usize) -> Result<usize> {
        if let Some(length) = self.loops[index].length {
            return Ok(length);
        }
        let mut rest = Vec::new();
        while let Some(item) = self.pull(index)? {
            rest.push(item);
        }
        let state = &mut self.loops[index];
        let length = rest.len() + state.steps + usize::from(state.after.is_some());
        state.rest = rest.into_iter();
        state.test = None;
        state.length = Some(length);
        Ok(length)
    }

    pub fn loop_attribute(&mut self, index: usize, name: &str) -> Result<Option<Value>> {
        let state = self.live(index)?;
        let (steps, depth) = (state.steps as i128, state.depth as i128);
        if METHODS.contains(&name) {
            return Ok(Some(Value::method(Value::Object(Object::Loop, index), name)));
        }
        if !FIELDS.contains(&name) {
            return Ok(None);
        }
        Ok(Some(match name {
            "index" => Value::Int(steps),
            "index0" => Value::Int(steps - 1),
            "revindex" => Value::Int(self.length(index)? as i128 - steps + 1),
            "revindex0" => Value::Int(self.length(index)? as i128 - steps),
            "first" => Value::Bool(steps == 1),
            "last" => Value::Bool(self.peek(index)?.is_none()),
            "length" => self.length(index)?.into(),
            "depth" => Value::Int(depth + 1),
            "depth0" => Value::Int(depth),
            "previtem" => match (&state.before, steps) {
                (Some(item), 2..) => item.clone(),
                _ => Value::undefined("there is no previous item"),
            },
            _ => self.peek(index)?.unwrap_or_else(|| Value::undefined("there is no next item")),
        }))
    }

    pub fn loop_method(&mut self, index: usize, name: &str, arguments: Arguments) -> Result<Value> {
        let steps = self.live(index)?.steps;
        if let Some((argument, _)) = arguments.named.first() {
            return fail(format!("loop.{name} takes no keyword argument '{argument}'"));
        }
        let values = arguments.positional;
        if name == "cycle" {
            if values.is_empty() {
                return fail("no items for cycling given");
            }
            return Ok(values[(steps - 1) % values.len()].clone());
        }
        let value = Value::tuple(values)?;
        let same = match &self.loops[index].changed {
            Some(before) => equal(before, &value)?,
            None => false,
        };
        self.loops[index].changed = Some(value);
        Ok((!same).into())
    }

    /// `loop(children)`: the body once more, one level deeper.
    pub fn loop_again(&mut self, index: usize, arguments: Arguments) -> Result<Value> {
        let state = self.live(index)?;
        let (code, scope, depth) = (state.code, state.scope, state.depth);
        if !code.recursive {
            return fail("The loop must have the 'recursive' marker to be called recursively.");
        }
        let [over] = arguments.bind("loop", ["iterable"], 1)?;
        let over = over.unwrap_or(Value::None);
        let (_, text) = self.capture(|renderer| renderer.run_loop(code, over, scope, depth + 1))?;
        Ok(text.into())
    }
}
