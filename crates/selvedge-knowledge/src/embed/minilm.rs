//! A sentence model that runs here: MiniLM, or another BERT of its kind, from a folder.
//!
//! It knows that a radiator is a heating, which no counting of letters does. A sentence
//! takes some twenty milliseconds, so files are found by their words until it has come
//! to them.

use std::path::Path;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, DTYPE};
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};

use super::{Embedder, Model, Piece, Vector};
use crate::words::spread;

/// The most tokens of one text: what the model was trained on.
const TOKENS_MAX: usize = 256;
/// The most characters that are worth taking apart into tokens.
const TEXT_CHARS_MAX: usize = 2_000;
/// Texts that go through the model together.
const BATCH: usize = 8;

/// A sentence model, in memory.
pub struct MiniLm {
    model: Model,
    bert: BertModel,
    tokenizer: Tokenizer,
}

impl MiniLm {
    /// The model in a folder with `config.json`, `tokenizer.json` and
    /// `model.safetensors`, as they are published.
    pub fn load(folder: &Path) -> Result<Self, String> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read(&path).map_err(|error| format!("`{}`: {error}", path.display()))
        };
        let wrong = |name: &str, error: &dyn std::fmt::Display| {
            format!("`{}` is not usable: {error}", folder.join(name).display())
        };
        let config: Config = serde_json::from_slice(&read("config.json")?)
            .map_err(|error| wrong("config.json", &error))?;
        let mut tokenizer = Tokenizer::from_bytes(read("tokenizer.json")?)
            .map_err(|error| wrong("tokenizer.json", &error))?;
        let truncation = TruncationParams {
            max_length: TOKENS_MAX.min(config.max_position_embeddings),
            ..TruncationParams::default()
        };
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(|error| wrong("tokenizer.json", &error))?
            .with_padding(Some(PaddingParams::default()));
        let weights = read("model.safetensors")?;
        // The name changes with the weights, and with it every vector.
        let hash = blake3::hash(&weights).to_hex();
        let model = Model {
            name: format!("sentences-1-{}", &hash[..16]),
            dimensions: config.hidden_size,
        };
        let bert = VarBuilder::from_buffered_safetensors(weights, DTYPE, &Device::Cpu)
            .and_then(|weights| BertModel::load(weights, &config))
            .map_err(|error| wrong("model.safetensors", &error))?;
        Ok(Self {
            model,
            bert,
            tokenizer,
        })
    }

    /// The vectors of some texts: the mean over their tokens, of length one.
    fn vectors(&self, texts: &[&str]) -> candle_core::Result<Vec<Vec<f32>>> {
        let encoded = self
            .tokenizer
            .encode_batch(texts.to_vec(), true)
            .map_err(candle_core::Error::msg)?;
        let rows = |of: fn(&tokenizers::Encoding) -> &[u32]| {
            let rows: Vec<&[u32]> = encoded.iter().map(of).collect();
            Tensor::new(rows, &Device::Cpu)
        };
        let ids = rows(|one| one.get_ids())?;
        let mask = rows(|one| one.get_attention_mask())?;
        let hidden = self.bert.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        let sum = hidden.broadcast_mul(&mask)?.sum(1)?;
        let mean = sum.broadcast_div(&mask.sum(1)?)?;
        let length = mean.sqr()?.sum_keepdim(1)?.sqrt()?;
        mean.broadcast_div(&length)?.to_vec2()
    }
}

impl Embedder for MiniLm {
    fn model(&self) -> Model {
        self.model.clone()
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn embed(&self, pieces: &[Piece<'_>]) -> Result<Vec<Vector>, String> {
        let text = |piece: &Piece<'_>| {
            let whole = format!("{} {}", spread(piece.name), piece.text);
            crate::node::cut(whole.trim(), TEXT_CHARS_MAX).to_owned()
        };
        let texts: Vec<String> = pieces.iter().map(text).collect();
        // Those of a length go together: the longest decides what all of them cost.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|at| texts[*at].len());
        let mut vectors = vec![Vector::Dense(Vec::new()); texts.len()];
        for some in order.chunks(BATCH) {
            let batch: Vec<&str> = some.iter().map(|at| texts[*at].as_str()).collect();
            let made = self.vectors(&batch).map_err(|error| error.to_string())?;
            for (at, vector) in some.iter().zip(made) {
                vectors[*at] = Vector::Dense(vector);
            }
        }
        Ok(vectors)
    }
}
