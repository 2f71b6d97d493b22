//! Names of types.

use std::collections::BTreeMap;

use syn::visit::Visit;

use super::source::{sources, visit_without_tests};

#[derive(Default)]
struct Types(Vec<String>);

impl<'a> Visit<'a> for Types {
    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.0.push(item.ident.to_string());
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        self.0.push(item.ident.to_string());
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        self.0.push(item.ident.to_string());
    }

    fn visit_item_type(&mut self, item: &'a syn::ItemType) {
        self.0.push(item.ident.to_string());
    }
}

#[test]
fn the_name_of_a_type_has_one_meaning() {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources() {
        let mut types = Types::default();
        visit_without_tests(&mut types, &source.syntax);
        for name in types.0 {
            files.entry(name).or_default().push(source.name.clone());
        }
    }
    assert!(files.len() > 300, "only {} types were found", files.len());
    files.retain(|_, files| files.len() > 1);
    assert!(files.is_empty(), "{files:#?}");
}
