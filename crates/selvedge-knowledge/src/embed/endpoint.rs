//! Vectors from a server: OpenAI's way of asking, or Ollama's.
//!
//! This crate opens no connection: whoever joins it to the network hands in the function
//! that sends a body and returns the answer.

use serde_json::{Value, json};

use super::{Embedder, Model, Piece, Vector};

/// Sends a JSON body to the server and returns its answer.
pub type Send = Box<dyn Fn(&Value) -> Result<Value, String> + std::marker::Send + Sync>;

/// How the server wants to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `POST /v1/embeddings`, as OpenAI and its imitators have it.
    OpenAi,
    /// `POST /api/embed`.
    Ollama,
}

/// The most texts of one request.
const TEXTS_MAX: usize = 64;
/// The most characters of one text: models read no further.
const TEXT_CHARS_MAX: usize = 6_000;

/// An embedder behind an address.
pub struct Endpoint {
    model: Model,
    protocol: Protocol,
    send: Send,
}

impl Endpoint {
    /// The embedder `model` at a server; asks once, to learn how many dimensions it has.
    pub fn new(model: &str, protocol: Protocol, send: Send) -> Result<Self, String> {
        let mut endpoint = Self {
            model: Model {
                name: model.to_owned(),
                dimensions: 0,
            },
            protocol,
            send,
        };
        let first = endpoint.ask(&["dimensions".to_owned()])?;
        endpoint.model.dimensions = first.first().map_or(0, Vec::len);
        match endpoint.model.dimensions {
            0 => Err(format!("`{model}` answered with an empty vector")),
            _ => Ok(endpoint),
        }
    }

    fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let body = json!({ "model": self.model.name, "input": texts });
        let answer = (self.send)(&body)?;
        let rows: Vec<&Value> = match self.protocol {
            Protocol::OpenAi => {
                let data = answer["data"]
                    .as_array()
                    .ok_or("the answer has no `data`")?;
                // They may come in any order, and say which they are.
                let mut rows: Vec<(u64, &Value)> = Vec::new();
                for (at, row) in data.iter().enumerate() {
                    let index = row["index"].as_u64().unwrap_or(at as u64);
                    rows.push((index, &row["embedding"]));
                }
                rows.sort_by_key(|(index, _)| *index);
                rows.into_iter().map(|(_, row)| row).collect()
            }
            Protocol::Ollama => {
                let rows = answer["embeddings"].as_array();
                rows.ok_or("the answer has no `embeddings`")?
                    .iter()
                    .collect()
            }
        };
        if rows.len() != texts.len() {
            return Err(format!("{} texts gave {} vectors", texts.len(), rows.len()));
        }
        rows.into_iter().map(numbers).collect()
    }
}

fn numbers(row: &Value) -> Result<Vec<f32>, String> {
    let values = row.as_array().ok_or("a vector is not a list of numbers")?;
    let number = |value: &Value| value.as_f64().map(|v| v as f32);
    let all: Option<Vec<f32>> = values.iter().map(number).collect();
    all.ok_or_else(|| "a vector is not a list of numbers".into())
}

impl Embedder for Endpoint {
    fn model(&self) -> Model {
        self.model.clone()
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn embed(&self, pieces: &[Piece<'_>]) -> Result<Vec<Vector>, String> {
        let mut vectors = Vec::with_capacity(pieces.len());
        for some in pieces.chunks(TEXTS_MAX) {
            let text = |piece: &Piece<'_>| {
                let whole = format!("{} {}", piece.name, piece.text);
                // A server may refuse an empty text.
                match crate::node::cut(whole.trim(), TEXT_CHARS_MAX) {
                    "" => "-".to_owned(),
                    text => text.to_owned(),
                }
            };
            let texts: Vec<String> = some.iter().map(text).collect();
            for row in self.ask(&texts)? {
                if row.len() != self.model.dimensions {
                    return Err(format!(
                        "a vector has {} dimensions, others have {}",
                        row.len(),
                        self.model.dimensions
                    ));
                }
                vectors.push(Vector::Dense(row));
            }
        }
        Ok(vectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str) -> Piece<'_> {
        Piece {
            text,
            ..Piece::default()
        }
    }

    #[test]
    fn vectors_in_any_order_find_their_texts() {
        let send = |body: &Value| {
            let texts = body["input"].as_array().unwrap();
            let row = |(at, text): (usize, &Value)| {
                let length = text.as_str().unwrap().len();
                json!({ "index": at, "embedding": [length, 1] })
            };
            let rows: Vec<Value> = texts.iter().enumerate().map(row).rev().collect();
            Ok(json!({ "data": rows }))
        };
        let endpoint = Endpoint::new("some", Protocol::OpenAi, Box::new(send)).unwrap();
        assert_eq!(endpoint.model().dimensions, 2);
        let vectors = endpoint.embed(&[piece("aaa"), piece("b")]).unwrap();
        assert_eq!(vectors[0], Vector::Dense(vec![3.0, 1.0]));
        assert_eq!(vectors[1], Vector::Dense(vec![1.0, 1.0]));
    }

    #[test]
    fn an_answer_that_lacks_a_vector_is_an_error() {
        let send = |_: &Value| Ok(json!({ "embeddings": [[1.0, 2.0]] }));
        let endpoint = Endpoint::new("some", Protocol::Ollama, Box::new(send)).unwrap();
        let error = endpoint.embed(&[piece("a"), piece("b")]).unwrap_err();
        assert_eq!(error, "2 texts gave 1 vectors");
    }
}
