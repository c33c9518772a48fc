//! Links end to end in one buffer, page by page.

/// How many links are prepared at once, outside the timed part, and wait in the queue at most.
pub(crate) const CHUNK: u64 = 100_000;

/// The links of some pages.
#[derive(Default)]
pub(crate) struct Chunk {
    text: String,
    /// Where each link ends.
    ends: Vec<usize>,
    /// How many links there are before the end of each page.
    pages: Vec<usize>,
}

impl Chunk {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.pages.clear();
    }

    /// Adds a link, which `write` appends to what is there.
    pub(crate) fn add(&mut self, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.ends.push(self.text.len());
    }

    pub(crate) fn end_page(&mut self) {
        if self.pages.last().copied().unwrap_or(0) < self.ends.len() {
            self.pages.push(self.ends.len());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn page_count(&self) -> usize {
        self.pages.len()
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = &str> {
        self.range(0, self.ends.len())
    }

    pub(crate) fn pages(&self) -> impl Iterator<Item = impl Iterator<Item = &str>> {
        let mut from = 0;
        self.pages.iter().map(move |&to| {
            let page = self.range(from, to);
            from = to;
            page
        })
    }

    fn range(&self, from: usize, to: usize) -> impl Iterator<Item = &str> {
        let mut start = if from == 0 { 0 } else { self.ends[from - 1] };
        self.ends[from..to].iter().map(move |&end| {
            let link = &self.text[start..end];
            start = end;
            link
        })
    }
}
