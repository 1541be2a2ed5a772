//! Weights of fields, arranged for lookups while walking a query.

use super::Weight;
use std::collections::HashMap;

/// Weights by their scope: a type, and then fields from one to the next.
#[derive(Debug, Default, PartialEq)]
pub(super) struct WeightTree {
    /// The first node is the root, which has no weight.
    nodes: Vec<Node>,
}

#[derive(Debug, Default, PartialEq)]
struct Node {
    weight: Option<Weight>,
    /// Names from the root on.
    depth: usize,
    children: HashMap<String, usize>,
}

impl WeightTree {
    pub(super) fn new(weights: &[Weight]) -> Self {
        let mut tree = Self {
            nodes: vec![Node::default()],
        };
        for weight in weights {
            let mut at = 0;
            for name in weight.path.split('.') {
                let depth = tree.nodes[at].depth + 1;
                let next = tree.nodes[at].children.get(name).copied();
                at = next.unwrap_or_else(|| {
                    tree.nodes.push(Node {
                        depth,
                        ..Node::default()
                    });
                    let made = tree.nodes.len() - 1;
                    tree.nodes[at].children.insert(name.to_owned(), made);
                    made
                });
            }
            tree.nodes[at].weight = Some(weight.clone());
        }
        tree
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.len() < 2
    }

    /// The nodes that a field leads to: from those before it by its name, and from the root by its type.
    pub(super) fn advance(&self, before: &[usize], name: &str, type_name: Option<&str>) -> Vec<usize> {
        let from_before = before
            .iter()
            .filter_map(|at| self.nodes[*at].children.get(name).copied());
        let mut nodes: Vec<usize> = from_before.collect();
        self.add_seed(&mut nodes, type_name);
        nodes
    }

    /// Adds the node of a type, unless it is there.
    pub(super) fn add_seed(&self, nodes: &mut Vec<usize>, type_name: Option<&str>) {
        if let Some(seed) = self.seed(type_name)
            && !nodes.contains(&seed)
        {
            nodes.push(seed);
        }
    }

    pub(super) fn seed(&self, type_name: Option<&str>) -> Option<usize> {
        self.nodes.first()?.children.get(type_name?).copied()
    }

    /// The weights that apply, the ones with longer paths last.
    pub(super) fn weights(&self, at: &[usize]) -> Vec<&Weight> {
        let mut found: Vec<&Node> = at.iter().map(|at| &self.nodes[*at]).collect();
        found.sort_by_key(|node| node.depth);
        found
            .into_iter()
            .filter_map(|node| node.weight.as_ref())
            .collect()
    }
}
