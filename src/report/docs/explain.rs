//! What docs/reference/problems.md has about each code, for a node that cannot reach the documentation.

use textwrap::Options;

/// The one source: a section for each code.
const PROBLEMS: &str = include_str!("../../../docs/reference/problems.md");

/// The code and the Markdown of each section.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    let sections = PROBLEMS.split("\n### `").skip(1);
    sections.filter_map(|section| {
        let (code, text) = section.split_once('`')?;
        let end = text.find("\n## ").unwrap_or(text.len());
        Some((code, text[..end].trim()))
    })
}

/// All codes, sorted.
pub fn codes() -> impl Iterator<Item = &'static str> {
    sections().map(|(code, _)| code)
}

/// The section of a code as plain text of this width, in columns; `None` if there is no such code.
#[must_use]
pub fn explain(code: &str, width: usize) -> Option<String> {
    let (_, section) = sections().find(|(known, _)| *known == code)?;
    let mut blocks = vec![code.to_owned()];
    blocks.extend(items(section).map(|item| filled(&item, width, "", "")));
    Some(blocks.join("\n\n") + "\n")
}

/// Every code with the beginning of its meaning.
#[must_use]
pub fn list(width: usize) -> String {
    let longest = codes().map(str::len).max().unwrap_or_default() + 2;
    let lines = sections().map(|(code, section)| {
        let meaning = items(section).find_map(|item| {
            let meaning = item.strip_prefix("Meaning: ")?;
            // A dot inside a word, as in `node.json`, ends no sentence.
            let ends = ["; ", ". "].into_iter().filter_map(|end| meaning.find(end));
            let end = ends.min().unwrap_or(meaning.len());
            Some(meaning[..end].trim_end_matches('.').to_owned())
        });
        let (first, rest) = (format!("{code:longest$}"), " ".repeat(longest));
        filled(&meaning.unwrap_or_default(), width, &first, &rest) + "\n"
    });
    lines.collect()
}

/// The paragraphs and list items of a section, each on one line without marks.
fn items(section: &str) -> impl Iterator<Item = String> {
    let blocks = section
        .split("\n\n")
        .flat_map(|block| block.split("\n- ").filter(|item| !item.is_empty()));
    blocks.map(|item| {
        let words: Vec<&str> = item.trim_start_matches("- ").split_whitespace().collect();
        plain(&words.join(" "))
    })
}

/// Markdown without emphasis, and links without addresses. What is between backticks stays as it is.
fn plain(text: &str) -> String {
    let mut parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => part.replace('*', "").replace('–', "-"),
        _ => format!("`{part}`"),
    });
    let mut rest = parts.by_ref().collect::<String>();
    let mut out = String::new();
    while let Some((before, link)) = rest.split_once('[') {
        out += before;
        let Some((name, after)) = link.split_once("](") else {
            rest = format!("[{link}");
            break;
        };
        out += name;
        rest = after
            .split_once(')')
            .map_or("", |(_, after)| after)
            .to_owned();
    }
    out + &rest
}

fn filled(text: &str, width: usize, first: &str, rest: &str) -> String {
    let options = Options::new(width).break_words(false);
    let options = options.initial_indent(first).subsequent_indent(rest);
    textwrap::fill(text, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_parts_within_the_width_and_without_marks() {
        assert!(codes().count() > 40 && codes().is_sorted());
        for code in codes() {
            let text = explain(code, 80).expect("a known code");
            for part in ["Meaning: ", "netfix: ", "What to do: "] {
                assert!(
                    text.contains(&format!("\n{part}")),
                    "{code} has no {part}: {text}"
                );
            }
            assert!(
                text.is_ascii() && !text.contains("**") && !text.contains("]("),
                "{text}"
            );
            let words = text.split_whitespace().count();
            assert!(words <= 121, "{code}: {words} words");
            let is_long = |line: &&str| line.len() > 80 && line.trim().contains(' ');
            assert_eq!(text.lines().find(is_long), None, "{code}");
        }
    }

    #[test]
    fn the_list_has_one_entry_a_code() {
        let text = list(100);
        let codes: Vec<&str> = codes().collect();
        let first = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
        let entries: Vec<String> = text
            .lines()
            .map(first)
            .filter(|word| !word.is_empty())
            .collect();
        assert_eq!(entries, codes);
    }

    #[test]
    fn a_dot_inside_a_word_ends_no_meaning() {
        let text = list(400);
        let cut = |line: &&str| line.matches('`').count() % 2 == 1;
        assert_eq!(text.lines().find(cut), None);
        assert!(text.lines().any(|line| line.contains(".json")), "{text}");
    }

    #[test]
    fn commands_keep_their_stars_and_links_lose_their_addresses() {
        assert_eq!(
            plain("**A** [b c](d.md#e), `x '*'` *f*"),
            "A b c, `x '*'` f"
        );
        assert_eq!(explain("frobnicate", 80), None);
    }
}
