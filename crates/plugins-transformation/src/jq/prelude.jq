def select(f): if f then . else empty end;
def map(f): [.[] | f];
def recurse(f): def r: ., (f | r); r;
def recurse(f; c): def r: ., (f | select(c) | r); r;
def recurse: ..;
def values: select(. != null);
def nulls: select(. == null);
def booleans: select(type == "boolean");
def numbers: select(type == "number");
def strings: select(type == "string");
def arrays: select(type == "array");
def objects: select(type == "object");
def iterables: select(type == "array" or type == "object");
def scalars: select(type != "array" and type != "object");
def abs: if type == "number" and . < 0 then -. else . end;
def add(f): reduce f as $x (null; . + $x);
def to_entries: [keys_unsorted[] as $k | {key: $k, value: .[$k]}];
def from_entries: reduce .[] as $x ({};
  ($x | if type == "object" then (if has("key") then .key elif has("k") then .k elif has("name") then .name elif has("Name") then .Name elif has("K") then .K else .Key end) else . end) as $k
  | . + {($k | if type == "string" then . elif . == null then "null" else tojson end):
      ($x | if type == "object" then (if has("value") then .value elif has("v") then .v elif has("Value") then .Value else .V end) else null end)});
def with_entries(f): to_entries | map(f) | from_entries;
def map_values(f): .[] |= f;
def del(f): delpaths([path(f)]);
def paths: path(..) | select(length > 0);
def paths(f): . as $in | paths | select(. as $p | $in | getpath($p) | f);
def leaf_paths: paths(scalars);
def pick(f): . as $in | reduce path(f) as $p (null; setpath($p; $in | getpath($p)));
def while(c; u): def w: if c then ., (u | w) else empty end; w;
def repeat(f): def r: ., (f | r); r;
def in(x): . as $k | x | has($k);
def inside(x): . as $in | x | contains($in);
def any(f): [.[] | f] | any;
def any(g; f): [g | f] | any;
def all(f): [.[] | f] | all;
def all(g; f): [g | f] | all;
def last(f): reduce f as $x (null; $x);
def nth($n; f): first(skip($n; f));
def isvalid(f): try (f | true) catch false;
def sort_by(f): _sort_by(map([f]));
def group_by(f): _group_by(map([f]));
def unique_by(f): [group_by(f)[] | .[0]];
def min_by(f): _min_by(map([f]));
def max_by(f): _max_by(map([f]));
def walk(f): def w: (if type == "object" then map_values(w) elif type == "array" then map(w) else . end) | f; w;
def test(re): _match(re; null; true);
def test(re; flags): _match(re; flags; true);
def match(re): _match(re; null; false)[];
def match(re; flags): _match(re; flags; false)[];
def capture(re): capture(re; null);
def capture(re; flags): match(re; flags) | [.captures[] | select(.name != null) | {key: .name, value: .string}] | from_entries;
def scan(re): scan(re; null);
def scan(re; flags): match(re; "g" + flags) | if (.captures | length) > 0 then [.captures[].string] else .string end;
def split(re; flags): _split(re; flags);
def splits(re): _split(re; null)[];
def splits(re; flags): _split(re; flags)[];
def sub(re; new): sub(re; new; "");
def sub(re; new; flags): . as $in
  | reduce match(re; flags) as $m ({at: 0, out: ""};
      . as $so
      | ([$m.captures[] | select(.name != null) | {key: .name, value: .string}] | from_entries | new) as $text
      | {at: ($m.offset + $m.length), out: ($so.out + $in[$so.at:$m.offset] + $text)})
  | .out + $in[.at:];
def gsub(re; new): sub(re; new; "g");
def gsub(re; new; flags): sub(re; new; flags + "g");
def combinations: if length == 0 then [] else .[0][] as $x | (.[1:] | combinations) as $rest | [$x] + $rest end;
def finites: select(isinfinite | not);
