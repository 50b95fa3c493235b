//! A command's arguments as a JSON Schema, for the model that asks for it. The rules in this program decide.

use serde_json::{Map, Value, json};

use super::{Argument, Command, Kind, TextRule};

impl Command {
    /// The JSON Schema of its arguments.
    pub fn input_schema(&self) -> Value {
        let properties: Map<String, Value> = self
            .arguments
            .iter()
            .map(|(name, argument)| (name.clone(), argument.schema()))
            .collect();
        let required = self.arguments.iter().filter(|(_, a)| !a.optional);
        let required: Vec<&String> = required.map(|(name, _)| name).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

impl Argument {
    fn schema(&self) -> Value {
        let mut schema = match &self.kind {
            Kind::Text(rule) => rule.schema(),
            Kind::Integer { min, max } => {
                json!({"type": "integer", "minimum": min, "maximum": max})
            }
            Kind::Flag { .. } => json!({"type": "boolean"}),
            Kind::Path { .. } => json!({"type": "string"}),
            Kind::List {
                each,
                min_items,
                max_items,
            } => json!({
                "type": "array", "items": each.schema(), "minItems": min_items, "maxItems": max_items,
            }),
        };
        if !self.description.is_empty()
            && let Some(object) = schema.as_object_mut()
        {
            object.insert("description".to_owned(), self.description.clone().into());
        }
        schema
    }
}

impl TextRule {
    fn schema(&self) -> Value {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "string".into());
        if let Some(one_of) = &self.one_of {
            schema.insert("enum".to_owned(), one_of.clone().into());
        } else {
            schema.insert("maxLength".to_owned(), self.max_len.into());
        }
        if let Some(regex) = &self.regex {
            schema.insert("pattern".to_owned(), format!("^(?:{})$", regex.text).into());
        }
        Value::Object(schema)
    }
}
