//! Resources that this version of Weir does not serve yet. Their shape is checked, so that a mistake is found
//! before they are.

use crate::schema::{
    Shape, address, array, having, id, integer, label_map, long_text, object, short_text, text, timestamp,
};
use std::sync::LazyLock;

/// The lists that are checked and not served, with the shape of their items.
pub fn sections() -> &'static [(&'static str, Shape)] {
    static SECTIONS: LazyLock<Vec<(&'static str, Shape)>> = LazyLock::new(|| {
        vec![
            ("ssls", ssl()),
            ("stream_routes", stream_route()),
            ("protos", proto()),
            ("secrets", object([])),
        ]
    });
    &SECTIONS
}

fn described() -> Shape {
    object([
        ("id", id()),
        ("name", short_text()),
        ("desc", long_text()),
        ("labels", label_map()),
        ("create_time", timestamp()),
        ("update_time", timestamp()),
    ])
}

fn ssl() -> Shape {
    let server_name = || text().pattern(r"^\*?[0-9a-zA-Z._\[\]:-]+$");
    described()
        .field("type", text().options(["server", "client"]).or("server"))
        .field("status", integer().numbers([1, 0]).or(1))
        .field("sni", server_name())
        .field("snis", array(server_name()).min_items(1))
        .field("client", object([]))
        .required(["cert", "key"])
}

fn stream_route() -> Shape {
    described()
        .field("remote_addr", address())
        .field("server_addr", address())
        .field("server_port", integer())
        .field("sni", text())
        .field("plugins", object([]))
        .field("upstream_id", id())
        .field("service_id", id())
}

fn proto() -> Shape {
    described()
        .field("content", text().length(1, 1 << 20))
        .all_of([having(["content"])])
}
