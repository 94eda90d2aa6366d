use rejoinder_guard::{Cleared, Draft};

fn main() {
    let _ = Cleared(Draft { text: "never decided on".to_owned() });
    let _ = Cleared::new(Draft { text: "never decided on".to_owned() });
    let _: Cleared<Draft> = Draft { text: "never decided on".to_owned() }.into();
    let _ = Cleared::<String>::default();
}
