//! Tables of text for terminals.

use std::fmt;

/// Width and alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// As wide as its widest cell, aligned to the left.
    Fit,
    /// This many characters, aligned to the left. A longer cell moves the rest of its row.
    Left(usize),
    /// This many characters, aligned to the right. A longer cell moves the rest of its row.
    Right(usize),
}

/// Rows of cells that are printed below each other. Headings are the first row.
#[derive(Clone, Debug)]
pub struct Table {
    gap: usize,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table without rows, with `gap` spaces between its columns. Columns that `columns` does not have are
    /// [`Column::Fit`].
    pub fn new(gap: usize, columns: &[Column]) -> Self {
        Self {
            gap,
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Returns the rows as lines without spaces at their ends.
    pub fn lines(&self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let columns: Vec<_> = (0..columns).map(|index| self.column(index)).collect();
        let gap = " ".repeat(self.gap);
        let line = |row: &Vec<String>| {
            let cells: Vec<_> = row
                .iter()
                .zip(&columns)
                .map(|(cell, column)| column.pad(cell))
                .collect();
            cells.join(&gap).trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }

    /// Returns a column with its width.
    fn column(&self, index: usize) -> Column {
        match self.columns.get(index) {
            None | Some(Column::Fit) => {
                let cells = self.rows.iter().filter_map(|row| row.get(index));
                Column::Left(cells.map(|cell| cell.chars().count()).max().unwrap_or(0))
            }
            Some(column) => *column,
        }
    }
}

impl Column {
    fn pad(self, cell: &str) -> String {
        match self {
            Self::Fit => cell.to_owned(),
            Self::Left(width) => format!("{cell:<width$}"),
            Self::Right(width) => format!("{cell:>width$}"),
        }
    }
}

/// One line for each row.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_have_no_spaces_at_their_ends() {
        let mut table = Table::new(3, &[]);
        table.row(["a", "bb", "c"]);
        table.row(["cccc", "é", ""]);
        assert_eq!(table.to_string(), "a      bb   c\ncccc   é\n");
    }

    #[test]
    fn a_column_of_fixed_width_does_not_grow() {
        let mut table = Table::new(1, &[Column::Left(3), Column::Right(4)]);
        table.row(["n", "1"]);
        table.row(["longer", "12345"]);
        assert_eq!(table.lines(), ["n      1", "longer 12345"]);
    }
}
