//! Tests of properties that every page has.

use roxmltree::{Document, Node, ParsingOptions};

use super::*;

/// Characters that would end a tag, an attribute or a text, or that no document may contain.
const NASTY: &str = "<script src='//x'>\"&amp;\u{1}\u{0}]]>";

fn plot() -> Chart {
    let series = |name: &str, shown, points: &[(f64, f64)]| {
        let (name, points) = (name.to_owned(), points.to_vec());
        Series { name, shown, points }
    };
    let lines = vec![
        series("one", Shown::Line, &[(8.0, 71.0), (64.0, 95.5), (4096.0, 1200.0)]),
        series(NASTY, Shown::Limit, &[(8.0, 64.0), (64.0, 64.5), (0.0, f64::NAN)]),
        series("dots", Shown::Dots, &[(16.0, 100.0)]),
        series("", Shown::Intervals, &[(16.0, 90.0), (16.0, 110.0)]),
        series("area", Shown::Area, &[(16.0, 100.0), (32.0, 200.0)]),
    ];
    let mut numbers = Table::new(["size", NASTY]);
    numbers.lines = vec![vec!["8 B".to_owned(), "71".to_owned()], vec![NASTY.to_owned(); 2]];
    Chart {
        title: format!("by size {NASTY}"),
        drawing: Drawing::Plot(Plot {
            x: Axis::new(NASTY, Unit::Bytes),
            y: Axis::new("one way", Unit::Nanoseconds),
            series: lines,
        }),
        numbers,
    }
}

fn bars() -> Chart {
    let bar = |name: &str, value| Bar { name: name.to_owned(), value, told: "told".to_owned() };
    let bars = vec![bar("first", 1.5), bar(NASTY, -0.5), bar(&"long ".repeat(30), f64::NAN)];
    let mark = Some(("limit".to_owned(), 1.0));
    let axis = Axis::new("of the limit", Unit::Count);
    let drawing = Drawing::Bars(Bars { axis, most: 1.2, mark, bars });
    Chart { title: "bars".to_owned(), drawing, numbers: Table::new(["one"]) }
}

fn stacks() -> Chart {
    let stack = |name: &str, lengths: &[f64]| Stack {
        name: name.to_owned(),
        lengths: lengths.to_vec(),
        told: "told".to_owned(),
    };
    let drawing = Drawing::Stacks(Stacks {
        axis: Axis::new("time", Unit::Count),
        parts: vec![NASTY.to_owned(), "rest".to_owned()],
        stacks: vec![stack(NASTY, &[1.0, 3.0]), stack("short", &[2.0, 0.0])],
    });
    Chart { title: "stacks".to_owned(), drawing, numbers: Table::new(["one"]) }
}

/// A ring of five places in a row, with a way that leads nowhere.
fn map() -> Chart {
    let places = (0..5).map(|place| (f64::from(place) / 4.0, 0.5)).collect();
    let way = |from, to, load| Way { from, to, load };
    let mut ways = vec![way(4, 0, 1.5), way(0, 4, f64::NAN), way(2, 9, 0.5), way(1, 1, 0.5)];
    ways.extend((0..4).flat_map(|at| [way(at, at + 1, 0.3), way(at + 1, at, 0.9)]));
    let drawing = Drawing::Map(Map { places, ways });
    Chart { title: "a map".to_owned(), drawing, numbers: Table::new(["one"]) }
}

fn page() -> String {
    let mut page = Page::new(NASTY, NASTY);
    page.heading(NASTY);
    page.text(NASTY);
    page.list(&[NASTY, "two"]);
    page.facts([(NASTY, NASTY)]);
    page.table(&plot().numbers);
    page.folded(NASTY, &plot().numbers);
    page.charts(&[plot(), bars(), stacks(), map()]).unwrap();
    page.html()
}

fn parsed(html: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(html, options).unwrap_or_else(|error| panic!("{error}: {html}"))
}

fn named<'a>(document: &'a Document<'a>, name: &str) -> Vec<Node<'a, 'a>> {
    document.descendants().filter(|node| node.tag_name().name() == name).collect()
}

/// All text in a node.
fn words(node: &Node<'_, '_>) -> String {
    node.descendants().filter_map(|part| part.is_text().then(|| part.text()).flatten()).collect()
}

#[test]
fn a_page_is_whole_whatever_is_told_of() {
    let html = page();
    let document = parsed(&html);
    assert!(named(&document, "script").is_empty());
    let told = NASTY.replace(['\u{1}', '\u{0}'], "");
    assert_eq!(words(&named(&document, "h1")[0]), told);
    assert_eq!(words(&named(&document, "dd")[0]), told);
    assert!(!html.contains("NaN") && !html.contains("inf\""), "{html}");
}

#[test]
fn a_page_loads_no_external_resource() {
    let html = page();
    let spaces = ["http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"];
    let rest = spaces.iter().fold(html.clone(), |rest, space| rest.replace(space, ""));
    for fetched in ["http:", "https:", "url(", "@import", "<link", "<img", "<script", "<iframe"] {
        assert!(!rest.contains(fetched), "{fetched} in {rest}");
    }
    let document = parsed(&html);
    for attribute in document.descendants().flat_map(|node| node.attributes()) {
        assert!(!["src", "href", "style"].contains(&attribute.name()), "{attribute:?}");
    }
}

#[test]
fn each_chart_has_a_title_axes_a_legend_and_its_numbers() {
    let html = page();
    let document = parsed(&html);
    let figures = named(&document, "figure");
    assert_eq!(figures.len(), 4);
    for (figure, axis) in figures.iter().zip(["one way", "of the limit"]) {
        let inside = |name: &str| -> Vec<String> {
            let nodes = figure.descendants().filter(|node| node.tag_name().name() == name);
            nodes.map(|node| words(&node).trim().to_owned()).collect()
        };
        assert!(!inside("figcaption")[0].is_empty());
        assert!(inside("text").iter().any(|text| text == axis), "{:?}", inside("text"));
        assert!(inside("li").len() >= 2);
        assert_eq!(inside("details").len(), 1);
    }
    let texts: Vec<_> = named(&document, "text").iter().map(words).collect();
    for label in ["8 B", "2 KiB", "100 ns", "1 us"] {
        assert!(texts.iter().any(|text| text.trim() == label), "{label} in {texts:?}");
    }
}

/// The numbers of an attribute.
fn numbers(node: &Node<'_, '_>, name: &str) -> Vec<f64> {
    let text = node.attribute(name).unwrap();
    text.split([' ', ','])
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().unwrap())
        .collect()
}

#[test]
fn the_parts_of_a_stack_are_as_long_as_they_are() {
    let Drawing::Stacks(stacks) = stacks().drawing else { unreachable!() };
    let svg = stacks.svg().unwrap();
    let document = parsed(&svg);
    let parts: Vec<_> = named(&document, "rect")
        .iter()
        .map(|part| [numbers(part, "x")[0], numbers(part, "width")[0]])
        .collect();
    let [[first, one], [second, three], [third, two], [_, none]] = parts[..] else {
        panic!("{parts:?}")
    };
    assert!((first + one - second).abs() < 1.5 && first == third, "{parts:?}");
    assert!((three / one - 3.0).abs() < 0.02 && (two / one - 2.0).abs() < 0.02, "{parts:?}");
    assert!(none < 1.5, "{parts:?}");
}

#[test]
fn a_way_that_would_pass_over_a_place_is_drawn_at_its_beginning() {
    let Drawing::Map(map) = map().drawing else { unreachable!() };
    let svg = map.svg().unwrap();
    let document = parsed(&svg);
    let middles: Vec<_> =
        named(&document, "circle").iter().map(|circle| numbers(circle, "cx")[0]).collect();
    let (first, last) = (middles[0], middles[middles.len() - 1]);
    let strokes: Vec<_> =
        named(&document, "polyline").iter().map(|line| numbers(line, "points")).collect();
    // Eight between neighbours, and two that leave the row at its ends.
    assert_eq!(strokes.len(), 10);
    let beyond = |stroke: &&Vec<f64>| stroke[2] < first - 1.0 || stroke[2] > last + 1.0;
    assert_eq!(strokes.iter().filter(beyond).count(), 2, "{strokes:?}");
    let far = (last - first) / 4.0 + 1.0;
    assert!(strokes.iter().all(|stroke| (stroke[2] - stroke[0]).abs() < far), "{strokes:?}");
}

#[test]
fn tables_have_the_cells_that_they_were_given() {
    let html = page();
    let document = parsed(&html);
    let tables = named(&document, "table");
    assert_eq!(tables.len(), 6);
    let cells = tables[0].descendants().filter(|node| node.tag_name().name() == "td");
    let cells: Vec<_> = cells.map(|cell| words(&cell)).collect();
    let told = NASTY.replace(['\u{1}', '\u{0}'], "");
    assert_eq!(cells, ["8 B", "71", &told, &told]);
}

#[test]
fn a_table_is_written_as_markdown() {
    let mut table = Table::new(["one way", "UCX"]);
    table.lines = vec![vec!["8 B".to_owned(), "1.25 us".to_owned()]];
    let written = "| one way | UCX     |\n| ------- | ------- |\n| 8 B     | 1.25 us |\n";
    assert_eq!(table.markdown(), written);
}

#[test]
fn colours_are_exchanged_in_dark_surroundings() {
    let html = page();
    let document = parsed(&html);
    let style = words(&named(&document, "style")[0]);
    assert!(style.contains("prefers-color-scheme"));
    for node in document.descendants() {
        for what in ["stroke", "fill"] {
            if let Some(colour) = node.attribute(what).filter(|colour| *colour != "none") {
                assert!(style.contains(&format!("svg [{what}=\"{colour}\"]")), "{colour}");
            }
        }
    }
}

#[test]
fn a_chart_is_a_file_of_its_own() {
    for chart in [plot(), bars(), stacks(), map()] {
        let svg = chart.file(&format!("{} {NASTY}", "a caption of many words ".repeat(9))).unwrap();
        let document = parsed(&svg);
        let told = NASTY.replace(['\u{1}', '\u{0}'], "");
        assert!(words(&named(&document, "title")[0]).starts_with(&chart.title[..4]));
        let texts: Vec<_> = named(&document, "text").iter().map(words).collect();
        // A caption breaks between words.
        assert!(texts.join(" ").ends_with(&told), "{texts:?}");
        assert!(texts.iter().filter(|text| text.contains("caption")).count() > 3, "{texts:?}");
        assert!(words(&named(&document, "style")[0]).contains("prefers-color-scheme"));
        assert!(named(&document, "script").is_empty());
    }
}
