//! The fields of a type in the order of their declaration, those of its parts included.
//!
//! Reading is asked for them: what is derived for a type names its fields to whoever it is
//! read from. So it is read from nothing, and what it asks for is written down. A list
//! beside each type would say the same and could be forgotten.

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// What a type is made of, as far as order matters.
#[derive(Debug, PartialEq)]
pub(super) enum Shape {
    /// Fields, in their order.
    Struct(Vec<(&'static str, Shape)>),
    /// Any number of the same.
    List(Box<Shape>),
    /// Something without fields of its own.
    Other,
}

impl Shape {
    /// The shape of `T`.
    pub(super) fn of<T: DeserializeOwned>() -> Self {
        let mut shape = Self::Other;
        T::deserialize(Asked(&mut shape)).expect("what agents say is made of derived types");
        shape
    }
}

/// Gives the least that each type takes, and writes down what it asked for.
struct Asked<'s>(&'s mut Shape);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(false)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u8(0)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u32(0)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(0)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(0.0)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str("")
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str("")
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut item = Shape::Other;
        let value = visitor.visit_seq(OneItem(Some(&mut item)))?;
        *self.0 = Shape::List(Box::new(item));
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(&mut Fields::of(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut fields = Fields::of(names);
        let value = visitor.visit_map(&mut fields)?;
        *self.0 = Shape::Struct(fields.seen);
        Ok(value)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let first: StrDeserializer<'_, Error> = variants
            .first()
            .copied()
            .unwrap_or_default()
            .into_deserializer();
        visitor.visit_enum(first)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u16 u128 f32 char bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

/// A list with one item.
struct OneItem<'s>(Option<&'s mut Shape>);

impl<'de> SeqAccess<'de> for OneItem<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let item = self.0.take();
        item.map(|item| seed.deserialize(Asked(item))).transpose()
    }
}

/// Every field once, in the order in which they are declared.
struct Fields {
    names: std::slice::Iter<'static, &'static str>,
    seen: Vec<(&'static str, Shape)>,
}

impl Fields {
    fn of(names: &'static [&'static str]) -> Self {
        Self {
            names: names.iter(),
            seen: Vec::new(),
        }
    }
}

impl<'de> MapAccess<'de> for &mut Fields {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(name) = self.names.next() else {
            return Ok(None);
        };
        self.seen.push((name, Shape::Other));
        let name: StrDeserializer<'_, Error> = (*name).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (_, shape) = self.seen.last_mut().expect("a key comes before its value");
        seed.deserialize(Asked(shape))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Map, Value};

    use super::*;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its fields are asked for")]
    struct Whole {
        zebra: Option<Vec<Part>>,
        #[serde(default)]
        any: Map<String, Value>,
        kind: Kind,
        number: f64,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its fields are asked for")]
    struct Part {
        why: String,
        #[serde(rename = "as")]
        what: Option<u32>,
        at: bool,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        First,
    }

    #[test]
    fn fields_are_known_in_the_order_of_their_declaration() {
        let part = Shape::Struct(vec![
            ("why", Shape::Other),
            ("as", Shape::Other),
            ("at", Shape::Other),
        ]);
        let whole = Shape::Struct(vec![
            ("zebra", Shape::List(Box::new(part))),
            ("any", Shape::Other),
            ("kind", Shape::Other),
            ("number", Shape::Other),
        ]);
        assert_eq!(Shape::of::<Whole>(), whole);
    }
}
