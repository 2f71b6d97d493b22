//! A table on a terminal, in the manner of kubectl: no borders, no wrapped cells. The least important columns go where the
//! terminal is too narrow; as the last resort the longest names are cut in their middle.

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, CellAlignment, Color, ContentArrangement};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Cell, Column, KEPT, Medium, Table, WIDE};
use crate::report::style::{Form, Style, Tone};
use crate::report::text::{MOST, more};

/// Spaces between two columns.
const GAP: usize = 2;
/// No cell is cut shorter than this.
const SHORTEST: usize = 12;

impl<R> Table<'_, R> {
    /// For the terminal; nothing if there are no rows.
    pub(in crate::report) fn text(&self, style: Style) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let is_wide = style.form == Form::Wide;
        let is_bounded = self.is_bounded && !style.lists_all();
        let most = if is_bounded { MOST } else { usize::MAX };
        let rows = &self.rows[..self.rows.len().min(most)];
        let columns = self.columns.iter();
        let mut shown: Vec<Filled<'_, R>> = columns
            .filter(|column| column.medium != Medium::Page && (is_wide || column.rank != WIDE))
            .map(|column| Filled::new(column, rows, style))
            .collect();
        if let Some(width) = style.width.filter(|_| !is_wide) {
            fit(&mut shown, width);
        }
        let more = more(self.rows.len() - rows.len());
        let more = more.map_or_else(String::new, |more| format!("{more} (-v: all)\n"));
        layout(&shown, rows.len(), style) + "\n" + &more
    }
}

/// A column with its cells.
struct Filled<'a, R> {
    column: &'a Column<'a, R>,
    cells: Vec<Cell>,
    width: usize,
    sign: &'static str,
}

impl<'a, R> Filled<'a, R> {
    fn new(column: &'a Column<'a, R>, rows: &[R], style: Style) -> Self {
        let cell = |row: &R| {
            let cell = (column.cell)(row);
            let text = style.encode(&cell.text).into_owned();
            Cell { text, ..cell }
        };
        let cells: Vec<Cell> = rows.iter().map(cell).collect();
        let longest = cells.iter().map(|cell| cell.text.width()).max();
        let head = if style.headers { column.title.len() } else { 0 };
        Self {
            column,
            cells,
            width: longest.unwrap_or_default().max(head),
            sign: if style.ascii { "~" } else { "…" },
        }
    }

    fn cut(&mut self, width: usize) {
        for cell in &mut self.cells {
            cell.text = cut(&cell.text, width, self.sign);
        }
        self.width = self.width.min(width);
    }
}

/// Leaves out the columns that do not fit beside more important ones, then cuts cells, until every line fits.
fn fit<R>(columns: &mut Vec<Filled<'_, R>>, width: usize) {
    let mut by_rank: Vec<usize> = (0..columns.len()).collect();
    by_rank.sort_by_key(|at| columns[*at].column.rank);
    let mut kept = vec![false; columns.len()];
    let mut used = 0_usize;
    for at in by_rank {
        let more = columns[at].width + if used == 0 { 0 } else { GAP };
        kept[at] = columns[at].column.rank == KEPT || used.saturating_add(more) <= width;
        used += if kept[at] { more } else { 0 };
    }
    let mut kept = kept.into_iter();
    columns.retain(|_| kept.next().unwrap_or_default());
    while let Some(excess) = used.checked_sub(width).filter(|excess| *excess > 0) {
        let widest = columns.iter_mut().max_by_key(|column| column.width);
        let Some(widest) = widest.filter(|column| column.width > SHORTEST) else {
            break;
        };
        let shorter = widest.width.saturating_sub(excess).max(SHORTEST);
        used -= widest.width - shorter;
        widest.cut(shorter);
    }
}

/// A text that fits: its beginning and its end, because the end distinguishes it.
pub(in crate::report) fn cut(text: &str, width: usize, sign: &str) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(sign.width());
    let end = taken(text.chars().rev(), room / 2);
    let head = taken(text.chars(), room - room / 2);
    let end: String = end.chars().rev().collect();
    format!("{head}{sign}{end}")
}

/// The first characters, as far as they fit.
fn taken(characters: impl Iterator<Item = char>, width: usize) -> String {
    let mut left = width;
    let fitting = characters.take_while(|c| {
        let rest = left.checked_sub(c.width().unwrap_or_default());
        left = rest.unwrap_or_default();
        rest.is_some()
    });
    fitting.collect()
}

fn layout<R>(columns: &[Filled<'_, R>], rows: usize, style: Style) -> String {
    let mut table = comfy_table::Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    if style.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    if style.headers {
        table.set_header(
            columns
                .iter()
                .map(|column| column.column.title.to_uppercase()),
        );
    }
    for row in 0..rows {
        let cells = columns.iter().filter_map(|column| column.cells.get(row));
        table.add_row(cells.map(painted));
    }
    let gap = u16::try_from(GAP).unwrap_or_default();
    let last = columns.len().saturating_sub(1);
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if at == last { 0 } else { gap }));
        column.set_cell_alignment(if columns[at].column.is_right {
            CellAlignment::Right
        } else {
            CellAlignment::Left
        });
    }
    table.trim_fmt()
}

fn painted(cell: &Cell) -> comfy_table::Cell {
    let text = comfy_table::Cell::new(&cell.text);
    let color = match cell.tone {
        None => return text,
        Some(Tone::Good) => Color::Green,
        Some(Tone::Calm) => Color::Cyan,
        Some(Tone::Warning) => Color::Yellow,
        Some(Tone::Bad) => Color::Red,
    };
    text.fg(color).add_attribute(Attribute::Bold)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(width: usize, ascii: bool, headers: bool) -> String {
        let style = Style {
            headers,
            ascii,
            width: Some(width),
            ..Style::plain()
        };
        let rows = [("shop/web-0", 3), ("monitoring/node-exporter-x7k2p", 15)];
        Table::new(rows)
            .column("Pod", KEPT, |row| row.0)
            .column("MAC", 2, |_| "02:42:0a:03:00:0d")
            .right("Steps", 1, |row| row.1)
            .column("NETNS", WIDE, |_| "/run/netns/x")
            .text(style)
    }

    #[test]
    fn the_least_important_column_goes_first_and_then_the_middle_of_names() {
        let all = "\
POD                             MAC                STEPS
shop/web-0                      02:42:0a:03:00:0d      3
monitoring/node-exporter-x7k2p  02:42:0a:03:00:0d     15
";
        assert_eq!(rendered(80, false, true), all);
        let narrow = "\
POD                             STEPS
shop/web-0                          3
monitoring/node-exporter-x7k2p     15
";
        assert_eq!(rendered(50, false, true), narrow);
        let cut = "\
POD
shop/web-0
monitoring…ter-x7k2p
";
        assert_eq!(rendered(20, false, true), cut);
        assert_eq!(
            rendered(20, true, false),
            "shop/web-0\nmonitoring~ter-x7k2p\n"
        );
    }

    #[test]
    fn a_character_of_two_columns_counts_as_two() {
        assert_eq!(cut("網路介面一二三", 9, "…"), "網路…二三");
    }
}
