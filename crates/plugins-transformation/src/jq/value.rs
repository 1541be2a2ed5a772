//! Values of programs. A copy of one shares what it holds, so that programs can pass values on without cost. How deep a
//! value is nested, and how much it would be if it were written out, is known of each and has bounds. They are shared
//! between threads, as those that stand in a program are.

use serde_json::{Map, Number, Value as Json};
use std::cmp::Ordering;
use std::sync::Arc;

/// Values that are nested deeper are refused, whatever their source.
pub const MAX_DEPTH: u16 = 256;
/// Values that are larger are refused: 1 for each value in it, and 1 for each 16 bytes of a text.
const MAX_SIZE: usize = 16 << 20;

/// A value.
#[derive(Debug, Clone)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(Arc<str>),
    List(Arc<List>),
    Object(Arc<Object>),
}

/// A list, and how deep and how large it is.
#[derive(Debug, Clone, Default)]
pub struct List {
    pub items: Vec<Value>,
    extent: ValueSize,
}

/// An object in the order of its members, and how deep and how large it is.
#[derive(Debug, Clone, Default)]
pub struct Object {
    pub members: indexed::Members,
    extent: ValueSize,
}

/// How deep and how large a value is.
#[derive(Debug, Clone, Copy)]
struct ValueSize {
    depth: u16,
    size: usize,
}

impl Default for ValueSize {
    /// That of something empty.
    fn default() -> Self {
        Self { depth: 1, size: 1 }
    }
}

impl ValueSize {
    fn check(self) -> Result<Self, TooDeep> {
        match self.depth > MAX_DEPTH || self.size > MAX_SIZE {
            true => Err(TooDeep),
            false => Ok(self),
        }
    }

    /// Replaces a part of this size by another. The stored depth may be larger than the real one afterwards.
    fn exchange(self, old: usize, new: Self) -> Result<Self, TooDeep> {
        let whole = Self {
            depth: self.depth.max(new.depth + 1),
            size: self.size.saturating_sub(old).saturating_add(new.size),
        };
        whole.check()
    }

    /// That of what holds these parts.
    fn around(parts: impl Iterator<Item = Self>) -> Result<Self, TooDeep> {
        let mut whole = Self { depth: 1, size: 1 };
        for part in parts {
            whole.depth = whole.depth.max(part.depth + 1);
            whole.size = whole.size.saturating_add(part.size);
        }
        whole.check()
    }
}

impl List {
    /// Takes an item out, which leaves null.
    pub fn take(&mut self, place: usize) -> Value {
        let Some(item) = self.items.get_mut(place) else {
            return Value::Null;
        };
        let old = std::mem::replace(item, Value::Null);
        self.extent.size = self.extent.size.saturating_sub(old.size()) + 1;
        old
    }

    /// Puts an item in. Between it and the others stands null.
    pub fn put(&mut self, place: usize, new: Value) -> Result<(), TooDeep> {
        if place >= self.items.len() {
            self.extent.size = self.extent.size.saturating_add(place + 1 - self.items.len());
            self.extent.check()?;
            self.items.resize(place + 1, Value::Null);
        }
        self.extent = self.extent.exchange(self.items[place].size(), new.extent())?;
        self.items[place] = new;
        Ok(())
    }
}

impl Object {
    /// Takes the value of a member out, which leaves null.
    pub fn take(&mut self, name: &str) -> Value {
        let Some(value) = self.members.get_mut(name) else {
            return Value::Null;
        };
        let old = std::mem::replace(value, Value::Null);
        self.extent.size = self.extent.size.saturating_sub(old.size()) + 1;
        old
    }

    /// Puts the value of a member in.
    pub fn put(&mut self, name: &Arc<str>, new: Value) -> Result<(), TooDeep> {
        let old = match self.members.get(name) {
            Some(old) => old.size(),
            None => {
                let size = text_extent(name).size;
                self.extent.size = self.extent.size.saturating_add(size);
                0
            }
        };
        self.extent = self.extent.exchange(old, new.extent())?;
        self.members.insert(Arc::clone(name), new);
        Ok(())
    }
}

/// Members of an object.
pub mod indexed {
    use super::Value;
    use std::collections::HashMap;
    use std::sync::Arc;

    /// So many members are looked through one by one.
    const FEW: usize = 8;

    /// Members in their order, found by name.
    #[derive(Debug, Clone, Default)]
    pub struct Members {
        list: Vec<(Arc<str>, Value)>,
        /// Where each is, if they are more than a few.
        places: HashMap<Arc<str>, usize>,
    }

    impl Members {
        fn place(&self, name: &str) -> Option<usize> {
            match self.list.len() <= FEW {
                true => self.list.iter().position(|(known, _)| &**known == name),
                false => self.places.get(name).copied(),
            }
        }

        fn index(&mut self) {
            let places = self.list.iter().zip(0..).skip(self.places.len());
            self.places
                .extend(places.map(|((name, _), place)| (Arc::clone(name), place)));
        }

        pub fn get(&self, name: &str) -> Option<&Value> {
            self.list.get(self.place(name)?).map(|(_, value)| value)
        }

        pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
            let place = self.place(name)?;
            self.list.get_mut(place).map(|(_, value)| value)
        }

        pub fn insert(&mut self, name: Arc<str>, value: Value) {
            match self.place(&name) {
                Some(place) => self.list[place].1 = value,
                None => {
                    self.list.push((name, value));
                    if self.list.len() > FEW {
                        self.index();
                    }
                }
            }
        }

        /// Keeps those that are to be kept.
        pub fn retain(&mut self, keeps: impl Fn(&str) -> bool) {
            self.list.retain(|(name, _)| keeps(name));
            self.places.clear();
            if self.list.len() > FEW {
                self.index();
            }
        }

        pub fn len(&self) -> usize {
            self.list.len()
        }

        pub fn iter(&self) -> impl Iterator<Item = &(Arc<str>, Value)> {
            self.list.iter()
        }

        /// The members in the order of their names.
        pub fn sorted(&self) -> Vec<&(Arc<str>, Value)> {
            let mut sorted: Vec<_> = self.list.iter().collect();
            sorted.sort_by(|one, other| one.0.cmp(&other.0));
            sorted
        }
    }
}

pub use indexed::Members;

/// A value that is nested too deep, or too large.
#[derive(Debug, PartialEq, Eq)]
pub struct TooDeep;

impl Value {
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// A number. What is not a valid number is null, what is too large the largest one.
    pub fn number(number: f64) -> Self {
        const WHOLE: f64 = 9_007_199_254_740_992.0;
        if number.is_nan() {
            return Self::Null;
        }
        if number.fract() == 0.0 && number.abs() <= WHOLE {
            return Self::Number(Number::from(number as i64));
        }
        let bounded = number.clamp(f64::MIN, f64::MAX);
        Number::from_f64(bounded).map_or(Self::Null, Self::Number)
    }

    pub fn count(count: usize) -> Self {
        Self::Number(Number::from(count))
    }

    pub fn list(items: Vec<Self>) -> Result<Self, TooDeep> {
        let extent = ValueSize::around(items.iter().map(Self::extent))?;
        Ok(Self::List(Arc::new(List { items, extent })))
    }

    pub fn object(members: Members) -> Result<Self, TooDeep> {
        let names = members.iter().map(|(name, _)| text_extent(name));
        let values = members.iter().map(|(_, value)| value.extent());
        let extent = ValueSize::around(names.chain(values))?;
        Ok(Self::Object(Arc::new(Object { members, extent })))
    }

    fn extent(&self) -> ValueSize {
        match self {
            Self::List(list) => list.extent,
            Self::Object(object) => object.extent,
            Self::Text(text) => text_extent(text),
            _ => ValueSize { depth: 0, size: 1 },
        }
    }

    /// How much it is if it is written out, or looked through as a whole.
    pub fn size(&self) -> usize {
        self.extent().size
    }

    pub fn of_json(json: &Json) -> Result<Self, TooDeep> {
        Ok(match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => Self::Number(number.clone()),
            Json::String(text) => Self::text(text.as_str()),
            Json::Array(items) => Self::list(items.iter().map(Self::of_json).collect::<Result<_, _>>()?)?,
            Json::Object(map) => Self::of_members(map.iter().map(|(name, value)| (name.as_str(), value)))?,
        })
    }

    /// An object of these members.
    pub fn of_members<'j>(of: impl Iterator<Item = (&'j str, &'j Json)>) -> Result<Self, TooDeep> {
        let mut members = Members::default();
        for (name, value) in of {
            members.insert(name.into(), Self::of_json(value)?);
        }
        Self::object(members)
    }

    pub fn to_json(&self, sorts: bool) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Number(number) => Json::Number(number.clone()),
            Self::Text(text) => Json::String(text.to_string()),
            Self::List(list) => Json::Array(list.items.iter().map(|item| item.to_json(sorts)).collect()),
            Self::Object(object) => {
                let member = |(name, value): &(Arc<str>, Self)| (name.to_string(), value.to_json(sorts));
                let map: Map<String, Json> = match sorts {
                    true => object.members.sorted().into_iter().map(member).collect(),
                    false => object.members.iter().map(member).collect(),
                };
                Json::Object(map)
            }
        }
    }

    /// The value as a program shows it in a text.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            other => other.to_json(false).to_string(),
        }
    }

    /// What is not false and not null.
    pub fn is_true(&self) -> bool {
        !matches!(self, Self::Null | Self::Bool(false))
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Object(_) => "object",
        }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    /// About how many bytes a value itself takes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => 16 + text.len(),
            Self::List(list) => 64 + 32 * list.items.len(),
            Self::Object(object) => 128 + 112 * object.members.len(),
            _ => 0,
        }
    }

    /// How much there is to a value itself, for the budget: 1 and a step for each 64 bytes, 4 items or 2 members.
    pub fn weight(&self) -> usize {
        match self {
            Self::Text(text) => 1 + text.len() / 64,
            Self::List(list) => 1 + list.items.len() / 4,
            Self::Object(object) => 1 + object.members.len() / 2,
            _ => 1,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(false) => 1,
            Self::Bool(true) => 2,
            Self::Number(_) => 3,
            Self::Text(_) => 4,
            Self::List(_) => 5,
            Self::Object(_) => 6,
        }
    }

    /// The order of all values. `steps`: counts the values that were looked at.
    pub fn order(&self, other: &Self, steps: &mut usize) -> Ordering {
        *steps += 1;
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => {
                if let (Some(one), Some(other)) = (one.as_i64(), other.as_i64()) {
                    return one.cmp(&other);
                }
                let number = |number: &Number| number.as_f64().unwrap_or(0.0);
                number(one).total_cmp(&number(other))
            }
            (Self::Text(one), Self::Text(other)) => {
                *steps += one.len().min(other.len()) / 64;
                one.cmp(other)
            }
            (Self::List(one), Self::List(other)) => {
                for (one, other) in one.items.iter().zip(&other.items) {
                    let found = one.order(other, steps);
                    if found.is_ne() {
                        return found;
                    }
                }
                one.items.len().cmp(&other.items.len())
            }
            (Self::Object(one), Self::Object(other)) => {
                let (one, other) = (one.members.sorted(), other.members.sorted());
                *steps += one.len() + other.len();
                let names = one.iter().map(|it| &it.0).cmp(other.iter().map(|it| &it.0));
                if names.is_ne() {
                    return names;
                }
                let pairs = one.iter().zip(&other);
                let mut orders = pairs.map(|(one, other)| one.1.order(&other.1, steps));
                orders.find(|found| found.is_ne()).unwrap_or(Ordering::Equal)
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

fn text_extent(text: &str) -> ValueSize {
    ValueSize {
        depth: 0,
        size: 1 + text.len() / 16,
    }
}
