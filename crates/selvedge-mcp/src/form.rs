//! What a server wants to know from the user: a form, with the server's name on it.
//!
//! A server that asks for a password is refused, whatever it says that it needs it for.

use async_trait::async_trait;
use selvedge_tool::visible;
use serde_json::{Map, Value};

/// More than this is no form.
const FIELDS_MAX: usize = 32;
const MESSAGE_CHARS_MAX: usize = 2_000;

// Whoever needs one of these has a way of its own to get it: signing in.
const SECRET_WORDS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "api key",
    "api_key",
    "apikey",
    "private key",
    "credential",
    "seed phrase",
];

/// What a server wants to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The server that asks.
    pub server: String,
    /// What it says to the user.
    pub message: String,
    /// What it wants to know.
    pub fields: Vec<Field>,
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What the user is shown.
    pub label: String,
    /// `string`, `number`, `integer`, `boolean` or `array`.
    pub kind: String,
    /// What it is if the user says nothing.
    pub default: Option<Value>,
    /// What can be chosen from, if it is a choice.
    pub options: Vec<String>,
    /// Whether it may be left empty.
    pub is_required: bool,
}

/// What the user did with a form.
#[derive(Clone, Debug, PartialEq)]
pub enum Filled {
    /// Filled it in.
    Accept(Map<String, Value>),
    /// Said no.
    Decline,
    /// Said nothing.
    Cancel,
}

/// Puts a form before the user.
#[async_trait]
pub trait Clerk: Send + Sync {
    /// What the user did with it.
    async fn fill(&self, form: &Form) -> Filled;
}

impl Form {
    /// The form that a schema describes.
    pub(crate) fn read(server: &str, message: &str, schema: &Value) -> Result<Self, String> {
        let properties = schema["properties"].as_object();
        let properties = properties.ok_or("it asks for nothing that has a name")?;
        if properties.len() > FIELDS_MAX {
            return Err(format!("it asks for more than {FIELDS_MAX} things at once"));
        }
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let field = |(name, schema): (&String, &Value)| Field {
            name: name.clone(),
            label: label(name, schema),
            kind: schema["type"].as_str().unwrap_or("string").to_owned(),
            default: schema.get("default").filter(|d| !d.is_null()).cloned(),
            options: options(schema),
            is_required: required.contains(&name.as_str()),
        };
        Ok(Self {
            server: server.to_owned(),
            message: visible(message).chars().take(MESSAGE_CHARS_MAX).collect(),
            fields: properties.iter().map(field).collect(),
        })
    }

    /// Whether it asks for something that is nobody's business.
    pub(crate) fn asks_for_a_secret(&self) -> bool {
        let mut texts: Vec<&str> = vec![&self.message];
        for field in &self.fields {
            texts.extend([field.name.as_str(), field.label.as_str()]);
        }
        texts.iter().any(|text| {
            let text = text.to_lowercase().replace('-', " ");
            SECRET_WORDS.iter().any(|word| text.contains(word))
        })
    }

    /// What it comes to if the user agrees and says nothing.
    pub fn defaults(&self) -> Map<String, Value> {
        let default = |field: &Field| Some((field.name.clone(), field.default.clone()?));
        self.fields.iter().filter_map(default).collect()
    }
}

impl Field {
    /// What the user typed, as what the field takes.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let number = |_| format!("`{}` takes a number", self.name);
        match self.kind.as_str() {
            "boolean" => match text.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Value::Bool(true)),
                "n" | "no" | "false" => Ok(Value::Bool(false)),
                _ => Err(format!("`{}` takes yes or no", self.name)),
            },
            "integer" => text.parse::<i64>().map(Value::from).map_err(|_| number(())),
            "number" => text.parse::<f64>().map(Value::from).map_err(|_| number(())),
            "array" => {
                let words = text
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty());
                let words: Vec<&str> = words.collect();
                words.iter().try_for_each(|word| self.offers(word))?;
                Ok(words.into())
            }
            _ => self.offers(text).map(|()| text.into()),
        }
    }

    fn offers(&self, text: &str) -> Result<(), String> {
        let is_offered = |option: &String| option == text;
        match self.options.is_empty() || self.options.iter().any(is_offered) {
            true => Ok(()),
            false => Err(format!(
                "`{}` is one of: {}",
                self.name,
                self.options.join(", ")
            )),
        }
    }
}

fn label(name: &str, schema: &Value) -> String {
    let said = schema["title"].as_str().or(schema["description"].as_str());
    let label: String = visible(said.unwrap_or(name)).chars().take(200).collect();
    label
}

fn options(schema: &Value) -> Vec<String> {
    let place = match schema["type"] == "array" {
        true => &schema["items"],
        false => schema,
    };
    let plain = place["enum"].as_array().into_iter().flatten();
    let titled = ["oneOf", "anyOf"];
    let titled = titled
        .iter()
        .filter_map(|key| place[*key].as_array())
        .flatten();
    plain
        .filter_map(Value::as_str)
        .chain(titled.filter_map(|option| option["const"].as_str()))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(message: &str, properties: Value) -> Form {
        let schema = json!({"type": "object", "properties": properties, "required": ["name"]});
        Form::read("crm", message, &schema).unwrap()
    }

    #[test]
    fn a_form_has_defaults_of_every_kind() {
        let form = form(
            "Who are you?",
            json!({
                "name": {"type": "string", "default": "Ada"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["on", "off"], "default": "on"},
                "verified": {"type": "boolean", "default": true},
                "note": {"type": "string"},
            }),
        );
        assert_eq!(
            Value::Object(form.defaults()),
            json!({"name": "Ada", "age": 30, "score": 95.5, "status": "on", "verified": true})
        );
        assert!(
            form.fields
                .iter()
                .any(|f| f.name == "name" && f.is_required)
        );
        let field = |name: &str| form.fields.iter().find(|f| f.name == name).unwrap();
        assert_eq!(field("age").parse(" 31 "), Ok(json!(31)));
        assert!(field("age").parse("old").is_err());
        assert_eq!(field("verified").parse("No"), Ok(json!(false)));
        assert!(field("status").parse("maybe").is_err());
    }

    #[test]
    fn who_asks_for_a_password_is_found_out() {
        let harmless = json!({"name": {"type": "string"}});
        assert!(!form("Which branch?", harmless.clone()).asks_for_a_secret());
        assert!(form("Please confirm your Password", harmless).asks_for_a_secret());
        for (name, schema) in [
            ("api-key", json!({"type": "string"})),
            ("x", json!({"type": "string", "title": "GitHub token"})),
            (
                "y",
                json!({"type": "string", "description": "your passphrase"}),
            ),
        ] {
            assert!(
                form("Hello", json!({name: schema})).asks_for_a_secret(),
                "{name}"
            );
        }
    }
}
