//! The terminal of `ayre top`.

use std::time::{Duration, Instant};

use anyhow::Result;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, TableState};

use super::look::Look;
use super::rates::Traffic;
use crate::info::links::remarks;
use crate::info::tables::{GAP, widths};

/// The contents of the screen.
#[derive(Default)]
struct Screen {
    traffic: Traffic,
    connections: Vec<Vec<String>>,
    remarks: String,
    place: TableState,
}

/// The command of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Nothing,
    Up,
    Down,
    Leave,
}

/// Shows links until the user leaves. The terminal is as it was afterwards.
pub(super) fn run(interval: Duration) -> Result<()> {
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal, interval);
    ratatui::restore();
    shown
}

fn show(terminal: &mut ratatui::DefaultTerminal, interval: Duration) -> Result<()> {
    let mut screen = Screen::default();
    let mut before = None;
    loop {
        let mut now = Look::take(before.as_ref())?;
        screen.traffic = std::mem::take(&mut now.traffic);
        screen.connections = std::mem::take(&mut now.connections);
        screen.remarks = remarks(&now.seen);
        before = Some(now);
        let next = Instant::now() + interval;
        while Instant::now() < next {
            terminal.draw(|frame| screen.draw(frame))?;
            if event::poll(next.saturating_duration_since(Instant::now()))?
                && screen.follow(wish(&event::read()?)) == Wish::Leave
            {
                return Ok(());
            }
        }
    }
}

fn wish(event: &Event) -> Wish {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
        return Wish::Nothing;
    };
    match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Wish::Leave,
        KeyCode::Char('q') | KeyCode::Esc => Wish::Leave,
        KeyCode::Char('k') | KeyCode::Up => Wish::Up,
        KeyCode::Char('j') | KeyCode::Down => Wish::Down,
        _ => Wish::Nothing,
    }
}

impl Screen {
    fn follow(&mut self, wish: Wish) -> Wish {
        match wish {
            Wish::Up => self.place.select_previous(),
            Wish::Down => self.place.select_next(),
            Wish::Nothing | Wish::Leave => {}
        }
        wish
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let said = self.remarks.lines().count() as u16;
        let parts = [Constraint::Length(1), Constraint::Min(0), Constraint::Length(said)];
        let [top, middle, bottom] = Layout::vertical(parts).areas(frame.area());
        let summary = format!("ayre top  {}  (q leaves)", self.traffic.summary);
        frame.render_widget(Line::from(summary), top);
        let tables = [&self.traffic.tables.states, &self.traffic.tables.counts, &self.connections];
        let tables: Vec<_> = tables.into_iter().filter(|lines| !lines.is_empty()).collect();
        let mut rest = middle;
        for (i, lines) in tables.iter().enumerate() {
            // A table leaves each later one as much as it has itself.
            let share = usize::from(rest.height) / (tables.len() - i);
            let own = lines.len().saturating_add(1).min(share) as u16;
            let parts = [Constraint::Length(own), Constraint::Min(0)];
            let [area, left] = Layout::vertical(parts).areas(rest);
            let area = if i + 1 == tables.len() { rest } else { area };
            table(frame, lines, area, &mut self.place);
            rest = left;
        }
        frame.render_widget(Paragraph::new(&*self.remarks), bottom);
    }
}

/// Lines below their heads, so that the one in question is seen.
fn table(frame: &mut Frame<'_>, lines: &[Vec<String>], area: Rect, place: &mut TableState) {
    let Some((heads, links)) = lines.split_first() else { return };
    let widths = widths(lines);
    let widths = widths.iter().map(|width| Constraint::Length(*width as u16));
    let table = Table::new(links.iter().cloned().map(Row::new), widths)
        .header(Row::new(heads.clone()).style(Style::new().add_modifier(Modifier::REVERSED)))
        .row_highlight_style(Style::new().add_modifier(Modifier::BOLD))
        .column_spacing(GAP as u16);
    frame.render_stateful_widget(table, area, place);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::info::tables::Tables;

    fn row(terminal: &Terminal<TestBackend>, number: u16) -> String {
        let buffer = terminal.backend().buffer();
        let cells = (0..buffer.area.width).map(|column| buffer[(column, number)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    }

    #[test]
    fn links_scroll_and_remarks_stay() {
        let mut terminal = Terminal::new(TestBackend::new(120, 10)).unwrap();
        let lines = |head: &str, what: &str| {
            let links = (0..9).map(|number| format!("{what} {number}"));
            [head.to_owned()].into_iter().chain(links).map(|cell| vec![cell]).collect()
        };
        let tables = Tables { states: lines("link", "is"), counts: lines("sent", "did") };
        let traffic = Traffic { summary: "links 9".to_owned(), tables };
        let remarks = "no answer: 7-1.sock\n".to_owned();
        let mut screen = Screen { traffic, remarks, ..Screen::default() };
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        assert!(row(&terminal, 0).contains("links 9"));
        assert_eq!(
            [1, 2, 5, 6].map(|number| row(&terminal, number)),
            ["link", "is 0", "sent", "did 0"]
        );
        assert_eq!(row(&terminal, 9), "no answer: 7-1.sock");
        for _ in 0..5 {
            screen.follow(wish(&Event::Key(KeyCode::Down.into())));
        }
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        assert_eq!([4, 8].map(|number| row(&terminal, number)), ["is 4", "did 4"]);
        // Where there are few, nothing lies between the tables but a line.
        screen.place = TableState::default();
        screen.traffic.tables.states.truncate(3);
        screen.traffic.tables.counts.truncate(3);
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        assert_eq!([4, 5, 6].map(|number| row(&terminal, number)), ["", "sent", "did 0"]);
        // Connections come last. Each table has its share.
        screen.connections = lines("local", "at");
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let shown = [1, 3, 6, 7, 8].map(|number| row(&terminal, number));
        assert_eq!(shown, ["link", "sent", "local", "at 0", "at 1"]);
    }

    #[test]
    fn q_escape_and_control_c_quit() {
        let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        for key in [KeyCode::Char('q').into(), KeyCode::Esc.into(), control] {
            assert_eq!(wish(&Event::Key(key)), Wish::Leave);
        }
        assert_eq!(wish(&Event::Key(KeyCode::Char('c').into())), Wish::Nothing);
    }
}
