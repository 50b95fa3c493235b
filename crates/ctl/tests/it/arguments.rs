use ctl::arguments::parse;

fn words(words: &[&str]) -> Result<String, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    parse(&words).map_err(|usage| usage.to_string())
}

#[test]
fn an_object_is_passed_on_as_it_was_written() {
    let object = r#"{"b": 1.0, "a":[ ]}"#;
    assert_eq!(words(&[object]).unwrap(), object);
}

#[test]
fn pairs_become_an_object_of_texts_and_of_json() {
    let object = words(&["path=/a=b", "deep:=true", "ids:=[1,2]", "note="]).unwrap();
    let value: serde_json::Value = serde_json::from_str(&object).unwrap();
    let wanted = serde_json::json!({ "path": "/a=b", "deep": true, "ids": [1, 2], "note": "" });
    assert_eq!(value, wanted);
    assert_eq!(words(&[]).unwrap(), "{}");
}

#[test]
fn what_is_no_argument_is_told_how_to_write_one() {
    assert!(words(&["path"]).unwrap_err().contains("write KEY=TEXT"));
    assert!(words(&["{\"a\":}"]).unwrap_err().contains("no JSON object"));
    assert!(words(&["a:=nope"]).unwrap_err().contains("`a` is no JSON"));
    assert!(words(&["a=1", "a=2"]).unwrap_err().contains("twice"));
}
