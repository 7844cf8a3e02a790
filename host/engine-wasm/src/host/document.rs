//! JSON documents.

use std::sync::Arc;

use bulkhead_core::quantity::Quantity;
use serde::Serialize;
use serde_json::Value;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::{Host, pointer};
use crate::bindings::bulkhead::policy::object;

/// A JSON document that a guest holds a handle of.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Document(Arc<Value>);

impl Document {
    /// A document that says what a value of the model says on the wire.
    pub(crate) fn of(value: &impl Serialize) -> Self {
        Self(Arc::new(json(value)))
    }
}

impl From<Arc<Value>> for Document {
    fn from(value: Arc<Value>) -> Self {
        Self(value)
    }
}

/// Model types have string keys only, so they always become JSON.
pub(crate) fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// A value as the contract shows it.
fn shown(value: &Value) -> object::Value {
    let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    match value {
        Value::Null => object::Value::Null,
        Value::Bool(flag) => object::Value::Boolean(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => object::Value::Integer(integer),
            None => object::Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => object::Value::Text(text.clone()),
        Value::Array(items) => object::Value::Array(size(items.len())),
        Value::Object(members) => object::Value::Fields(size(members.len())),
    }
}

/// Thousandths of a quantity, rounded up, as far as 64 bits go.
fn thousandths(quantity: Quantity) -> i64 {
    quantity.millis().clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

impl Host {
    fn at(&self, this: &Resource<Document>, pointer: &str) -> Result<Option<&Value>> {
        Ok(pointer::pointer(&self.table.get(this)?.0, pointer))
    }
}

impl object::Host for Host {}

impl object::HostObject for Host {
    fn get(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<object::Value>> {
        Ok(self.at(&this, &pointer)?.map(shown))
    }

    fn get_many(&mut self, this: Resource<Document>, pointers: Vec<String>) -> Result<Vec<Option<object::Value>>> {
        let document = &self.table.get(&this)?.0;
        Ok(pointers.iter().map(|pointer| pointer::pointer(document, pointer).map(shown)).collect())
    }

    fn get_each(
        &mut self,
        this: Resource<Document>,
        in_list: String,
        pointer: String,
    ) -> Result<Vec<Option<object::Value>>> {
        let elements = self.at(&this, &in_list)?.and_then(Value::as_array);
        Ok(elements.into_iter().flatten().map(|element| pointer::pointer(element, &pointer).map(shown)).collect())
    }

    fn get_string(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<String>> {
        Ok(self.at(&this, &pointer)?.and_then(Value::as_str).map(str::to_owned))
    }

    fn get_s64(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<i64>> {
        Ok(self.at(&this, &pointer)?.and_then(Value::as_i64))
    }

    fn get_f64(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<f64>> {
        Ok(self.at(&this, &pointer)?.and_then(Value::as_f64))
    }

    fn get_bool(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<bool>> {
        Ok(self.at(&this, &pointer)?.and_then(Value::as_bool))
    }

    fn get_quantity_milli(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<i64>> {
        let quantity = self.at(&this, &pointer)?.and_then(|value| Quantity::from_json(value).ok());
        Ok(quantity.map(thousandths))
    }

    fn length(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<u32>> {
        let length = match self.at(&this, &pointer)? {
            Some(Value::Array(items)) => Some(items.len()),
            Some(Value::Object(members)) => Some(members.len()),
            _ => None,
        };
        Ok(length.and_then(|length| u32::try_from(length).ok()))
    }

    fn keys(&mut self, this: Resource<Document>, pointer: String) -> Result<Vec<String>> {
        let members = self.at(&this, &pointer)?.and_then(Value::as_object);
        Ok(members.into_iter().flat_map(|members| members.keys().cloned()).collect())
    }

    fn json(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<String>> {
        Ok(self.at(&this, &pointer)?.map(ToString::to_string))
    }

    fn drop(&mut self, this: Resource<Document>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}
