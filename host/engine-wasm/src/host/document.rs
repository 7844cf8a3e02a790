//! JSON documents.

use bulkhead_core::quantity::Quantity;
use serde_json::Value;
use wasmtime::Result;
use wasmtime::component::{Resource, ResourceTable};

use super::allowance::{Copied, VALUE_BYTES};
use super::lent::Document;
use super::trees::text_bytes;
use super::{Host, pointer};
use crate::host::bindings::bulkhead::policy::object;

pub(crate) use bulkhead_core::quantity::QUANTITY_BYTES_MAX;

/// Conversion of a value to the contract's type.
impl Copied for &Value {
    type Copy = object::Value;

    fn bytes(&self) -> usize {
        VALUE_BYTES + self.as_str().map_or(0, str::len)
    }

    fn copy(self) -> object::Value {
        let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        match self {
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
}

/// Returns a quantity in thousandths, rounded up and clamped to 64 bits.
fn thousandths(quantity: Quantity) -> i64 {
    quantity.millis().clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

/// Returns the value at a pointer of a document.
fn at<'t>(table: &'t ResourceTable, this: &Resource<Document>, pointer: &str) -> Result<Option<&'t Value>> {
    Ok(pointer::pointer(table.get(this)?.value(), pointer))
}

impl object::Host for Host {}

impl object::HostObject for Host {
    fn get(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<object::Value>> {
        self.asked(&[&pointer])?;
        let value = at(&self.table, &this, &pointer)?;
        Ok(self.allowance.copy(value)?)
    }

    fn get_many(&mut self, this: Resource<Document>, pointers: Vec<String>) -> Result<Vec<Option<object::Value>>> {
        let pointers: Vec<_> = pointers.iter().map(String::as_str).collect();
        self.asked(&pointers)?;
        let document = self.table.get(&this)?.value();
        Ok(self
            .allowance
            .copy_each(pointers.into_iter().map(|pointer| pointer::pointer(document, pointer)))?)
    }

    fn get_each(
        &mut self,
        this: Resource<Document>,
        in_list: String,
        pointer: String,
    ) -> Result<Vec<Option<object::Value>>> {
        self.asked(&[&in_list, &pointer])?;
        let elements = at(&self.table, &this, &in_list)?.and_then(Value::as_array);
        let found = elements
            .into_iter()
            .flatten()
            .map(|element| pointer::pointer(element, &pointer));
        Ok(self.allowance.look_up_each(pointer.len(), found)?)
    }

    fn get_string(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<String>> {
        self.asked(&[&pointer])?;
        let value = at(&self.table, &this, &pointer)?;
        Ok(self.allowance.copy(value.and_then(Value::as_str))?)
    }

    fn get_s64(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<i64>> {
        self.asked(&[&pointer])?;
        let value = at(&self.table, &this, &pointer)?;
        Ok(self.allowance.copy(value.and_then(Value::as_i64))?)
    }

    fn get_f64(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<f64>> {
        self.asked(&[&pointer])?;
        let value = at(&self.table, &this, &pointer)?;
        Ok(self.allowance.copy(value.and_then(Value::as_f64))?)
    }

    fn get_bool(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<bool>> {
        self.asked(&[&pointer])?;
        let value = at(&self.table, &this, &pointer)?;
        Ok(self.allowance.copy(value.and_then(Value::as_bool))?)
    }

    fn get_quantity_milli(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<i64>> {
        self.asked(&[&pointer])?;
        let value = at(&self.table, &this, &pointer)?;
        let short = |value: &&Value| value.as_str().is_none_or(|text| text.len() <= QUANTITY_BYTES_MAX);
        let quantity = value.filter(short).and_then(|value| Quantity::from_json(value).ok());
        Ok(self.allowance.copy(quantity.map(thousandths))?)
    }

    fn length(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<u32>> {
        self.asked(&[&pointer])?;
        let value = at(&self.table, &this, &pointer)?;
        let length = match value {
            Some(Value::Array(items)) => Some(items.len()),
            Some(Value::Object(members)) => Some(members.len()),
            _ => None,
        };
        Ok(self
            .allowance
            .copy(length.and_then(|length| u32::try_from(length).ok()))?)
    }

    fn keys(&mut self, this: Resource<Document>, pointer: String) -> Result<Vec<String>> {
        self.asked(&[&pointer])?;
        let members = at(&self.table, &this, &pointer)?.and_then(Value::as_object);
        Ok(self.allowance.copy_each(
            members
                .into_iter()
                .flat_map(|members| members.keys().map(String::as_str)),
        )?)
    }

    fn json(&mut self, this: Resource<Document>, pointer: String) -> Result<Option<String>> {
        self.asked(&[&pointer])?;
        let Some(value) = at(&self.table, &this, &pointer)? else {
            return Ok(None);
        };
        self.allowance.charge(VALUE_BYTES + text_bytes(value))?;
        Ok(Some(value.to_string()))
    }

    fn drop(&mut self, this: Resource<Document>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}
