// SPDX-License-Identifier: Apache-2.0
//! Runs the statements of a template.

use crate::jinja::error::{descend, fail, spend, Result};
use crate::jinja::grammar::syntax::{Expr, ExprKind, Macro, Statement, StatementKind, Target};
use crate::jinja::interpreter::state::{Flow, MacroState, Renderer};
use crate::jinja::values::arguments::Arguments;
use crate::jinja::values::value::{Object, Value};

impl<'t> Renderer<'t> {
    pub fn template(mut self, body: &'t [Statement]) -> Result<String> {
        self.body(body)?;
        Ok(self.out)
    }

    pub fn body(&mut self, body: &'t [Statement]) -> Result<Flow> {
        for statement in body {
            spend(1)?;
            let flow = self.statement(&statement.kind).map_err(|error| error.or_line(statement.line))?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, kind: &'t StatementKind) -> Result<Flow> {
        descend()?;
        match kind {
            StatementKind::Data(text) => self.write(text)?,
            StatementKind::Output(expr) => {
                let value = self.evaluate(expr)?;
                self.write_value(&value).map_err(|error| error.or_line(expr.line))?;
            }
            StatementKind::If { branches, otherwise } => {
                for (test, body) in branches {
                    if self.holds(test)? {
                        return self.body(body);
                    }
                }
                return self.body(otherwise);
            }
            StatementKind::For(code) => {
                let over = self.evaluate(&code.over)?;
                let scope = self.scopes.current();
                if !code.recursive {
                    return self.run_loop(code, over, scope, 0);
                }
                let (_, text) = self.capture(|renderer| renderer.run_loop(code, over, scope, 0))?;
                self.write(&text)?;
            }
            StatementKind::Set(target, expr) => {
                self.check_namespaces(target)?;
                let value = self.evaluate(expr)?;
                self.assign(target, value)?;
            }
            StatementKind::SetBlock { target, filter, body } => {
                return self.set_block(target, filter.as_ref(), body)
            }
            StatementKind::With { bindings, body } => {
                let mut values = Vec::new();
                for (_, value) in bindings {
                    values.push(self.evaluate(value)?);
                }
                return self.inner(|renderer| {
                    for ((target, _), value) in bindings.iter().zip(values) {
                        renderer.assign(target, value)?;
                    }
                    renderer.body(body)
                });
            }
            StatementKind::Macro(code) => {
                let value = self.new_macro(code);
                self.scopes.set(code.name.as_deref().unwrap_or_default(), value);
            }
            StatementKind::CallBlock { call, caller } => self.call_block(call, caller)?,
            StatementKind::FilterBlock { filter, body } => {
                let (flow, value) = self.inner(|renderer| {
                    let (flow, text) = renderer.capture(|renderer| renderer.body(body))?;
                    Ok((flow, renderer.filter_text(filter, text)?))
                })?;
                if flow != Flow::Next {
                    return Ok(flow);
                }
                match &value {
                    Value::Str(text) => self.write(&text.text)?,
                    _ => return fail(format!("a filter block gives {}, not text", value.type_name())),
                }
            }
            StatementKind::Scope(body) => return self.inner(|renderer| renderer.body(body)),
            StatementKind::Block(body) => {
                self.in_scope(0, |renderer| renderer.body(body))?;
            }
            StatementKind::Generation(body) => {
                self.write(self.brackets.begin)?;
                self.inner(|renderer| renderer.body(body))?;
                self.write(self.brackets.end)?;
            }
            StatementKind::Break => return Ok(Flow::Break),
            StatementKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn filter_text(&mut self, filter: &'t Expr, text: String) -> Result<Value> {
        let before = std::mem::replace(&mut self.filtered, text.into());
        let value = self.evaluate(filter);
        self.filtered = before;
        value
    }

    fn set_block(
        &mut self,
        target: &'t Target,
        filter: Option<&'t Expr>,
        body: &'t [Statement],
    ) -> Result<Flow> {
        let (flow, value) = self.inner(|renderer| {
            let (flow, text) = renderer.capture(|renderer| renderer.body(body))?;
            match filter {
                Some(filter) if flow == Flow::Next => Ok((flow, renderer.filter_text(filter, text)?)),
                _ => Ok((flow, Value::from(text))),
            }
        })?;
        if flow == Flow::Next {
            self.check_namespaces(target)?;
            self.assign(target, value)?;
        }
        Ok(flow)
    }

    fn new_macro(&mut self, code: &'t Macro) -> Value {
        let scope = self.scopes.capture();
        self.macros.push(MacroState { code, scope });
        Value::Object(Object::Macro, self.macros.len() - 1)
    }

    fn call_block(&mut self, call: &'t Expr, caller: &'t Macro) -> Result<()> {
        let ExprKind::Call(of, given) = &*call.kind else { return fail("expected call") };
        let caller = self.new_macro(caller);
        let function = self.evaluate(of)?;
        let mut arguments = self.arguments(given)?;
        arguments.named.push(("caller".into(), caller));
        let value = self.call(&function, arguments).map_err(|error| error.or_line(call.line))?;
        self.write_value(&value)
    }

    fn namespace_named(&self, name: &str) -> Result<usize> {
        match self.lookup(name) {
            Value::Object(Object::Namespace, index) => Ok(index),
            _ => fail(format!("cannot assign an attribute of `{name}`: it is no namespace")),
        }
    }

    fn check_namespaces(&self, target: &Target) -> Result<()> {
        match target {
            Target::Name(_) => Ok(()),
            Target::Attribute(name, _) => self.namespace_named(name).map(|_| ()),
            Target::Tuple(targets) => targets.iter().try_for_each(|target| self.check_namespaces(target)),
        }
    }

    pub fn assign(&mut self, target: &'t Target, value: Value) -> Result<()> {
        spend(1)?;
        match target {
            Target::Name(name) => self.scopes.set(name, value),
            Target::Attribute(name, attribute) => {
                let index = self.namespace_named(name)?;
                self.namespaces[index].insert(attribute.as_str().into(), value)?;
            }
            Target::Tuple(targets) => {
                let values = match &value {
                    Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                        return fail(format!("cannot unpack non-iterable {} object", value.type_name()))
                    }
                    _ => value.items()?,
                };
                if values.len() != targets.len() {
                    return fail(format!("wanted {} values to unpack, got {}", targets.len(), values.len()));
                }
                for (target, value) in targets.iter().zip(values) {
                    self.assign(target, value)?;
                }
            }
        }
        Ok(())
    }

    /// Binds the arguments of a macro as Jinja2's Macro does, in the scope of its body.
    fn bind_macro(&mut self, code: &'t Macro, mut arguments: Arguments) -> Result<()> {
        let name = code.name.as_deref().unwrap_or("caller");
        let extra = arguments.positional.split_off(arguments.positional.len().min(code.parameters.len()));
        let given = arguments.positional.len();
        let mut values: Vec<Option<Value>> =
            std::mem::take(&mut arguments.positional).into_iter().map(Some).collect();
        for parameter in &code.parameters[given..] {
            values.push(arguments.take_named(parameter));
        }
        for parameter in &code.parameters {
            self.scopes.set(parameter, Value::undefined(format!("'{parameter}' is undefined")));
        }
        if code.uses_caller {
            let caller = arguments.take_named("caller").filter(|caller| !matches!(caller, Value::None));
            self.scopes.set("caller", caller.unwrap_or_else(|| Value::undefined("No caller defined")));
        }
        if code.uses_kwargs {
            let named = std::mem::take(&mut arguments.named);
            let named = Arguments { positional: Vec::new(), named }.into_dict()?;
            self.scopes.set("kwargs", Value::dict(named));
        } else if let Some((argument, _)) = arguments.named.first() {
            return fail(format!("macro '{name}' takes no keyword argument '{argument}'"));
        }
        if code.uses_varargs {
            self.scopes.set("varargs", Value::tuple(extra)?);
        } else if !extra.is_empty() {
            return fail(format!("macro '{name}' takes not more than {} argument(s)", code.parameters.len()));
        }
        let first_default = code.parameters.len() - code.defaults.len();
        for (at, (parameter, value)) in code.parameters.iter().zip(values).enumerate() {
            let value = match (value, at.checked_sub(first_default)) {
                (Some(value), _) => value,
                (None, Some(default)) => self.evaluate(&code.defaults[default])?,
                (None, None) => Value::undefined(format!("parameter '{parameter}' was not provided")),
            };
            self.scopes.set(parameter, value);
        }
        Ok(())
    }

    pub fn call_macro(&mut self, index: usize, arguments: Arguments) -> Result<Value> {
        spend(1)?;
        let (code, scope) = (self.macros[index].code, self.macros[index].scope);
        let (_, text) = self.capture(|renderer| {
            renderer.in_scope(scope, |renderer| {
                renderer.bind_macro(code, arguments)?;
                renderer.body(&code.body)
            })
        })?;
        Ok(text.into())
    }
}
