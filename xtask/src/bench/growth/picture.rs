//! Line charts as SVG text: a logarithmic axis for what grows, a linear one from 0 for what it costs. Knows no broker.

use std::fmt::Write;

/// What is drawn.
#[derive(Debug)]
pub(super) struct Picture<'a> {
    pub(super) title: &'a str,
    pub(super) across: &'a str,
    pub(super) up: &'a str,
    /// Name and points of each line, from left to right.
    pub(super) lines: Vec<(String, Vec<(f64, f64)>)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 72.0;

/// Told apart also by those who see no difference between red and green.
const COLOURS: [&str; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00",
];

impl Picture<'_> {
    pub(super) fn svg(&self) -> String {
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n"
        );
        let scale = Scale::of(self);
        text(&mut out, (LEFT, 24.0), "start", "16", self.title);
        self.draw_axes(&mut out, &scale);
        for (index, (name, points)) in self.lines.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            draw_line(&mut out, &scale, points, colour);
            let at = (LEFT + 12.0 + 150.0 * index as f64, HEIGHT - 12.0);
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>",
                at.0 - 8.0,
                at.1 - 4.0
            );
            text(&mut out, at, "start", "12", name);
        }
        out.push_str("</svg>\n");
        out
    }

    fn draw_axes(&self, out: &mut String, scale: &Scale) {
        let base = HEIGHT - BOTTOM;
        for step in 0..=STEPS {
            let value = scale.most / STEPS as f64 * step as f64;
            let y = scale.y(value);
            let end = WIDTH - RIGHT;
            rule(out, (LEFT, y), (end, y), "#dddddd");
            text(out, (LEFT - 8.0, y + 4.0), "end", "12", &number(value));
        }
        let mut seen: Vec<f64> = self
            .lines
            .iter()
            .flat_map(|(_, points)| points)
            .map(|point| point.0)
            .collect();
        seen.sort_by(f64::total_cmp);
        seen.dedup();
        for value in seen {
            let x = scale.x(value);
            rule(out, (x, base), (x, base + 5.0), "#333333");
            text(out, (x, base + 18.0), "middle", "12", &number(value));
        }
        rule(out, (LEFT, base), (WIDTH - RIGHT, base), "#333333");
        let middle = LEFT.midpoint(WIDTH - RIGHT);
        text(out, (middle, base + 36.0), "middle", "12", self.across);
        text(out, (LEFT, TOP - 6.0), "start", "12", self.up);
    }
}

/// Marks on the axis upwards.
const STEPS: u32 = 4;

/// From values to places.
struct Scale {
    /// Logarithms of the first and the last value across.
    across: (f64, f64),
    most: f64,
}

impl Scale {
    fn of(picture: &Picture<'_>) -> Self {
        let points = || picture.lines.iter().flat_map(|(_, points)| points);
        let least = points().map(|point| point.0).fold(f64::MAX, f64::min);
        let last = points()
            .map(|point| point.0)
            .fold(f64::MIN_POSITIVE, f64::max);
        let high = points().map(|point| point.1).fold(0.0, f64::max);
        Self {
            across: (least.min(last).max(f64::MIN_POSITIVE).log10(), last.log10()),
            most: round_up(high),
        }
    }

    fn x(&self, value: f64) -> f64 {
        let (first, last) = self.across;
        let span = if last > first { last - first } else { 1.0 };
        LEFT + (value.log10() - first) / span * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.most * (HEIGHT - TOP - BOTTOM)
    }
}

/// The next of 1, 2, 4, 8 times a power of ten, so that the marks are short numbers.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 8.0, 10.0];
    let step = steps.into_iter().find(|step| step * power >= value);
    step.unwrap_or(10.0) * power
}

fn draw_line(out: &mut String, scale: &Scale, points: &[(f64, f64)], colour: &str) {
    let places = points.iter().map(|&(x, y)| (scale.x(x), scale.y(y)));
    let path: Vec<String> = places
        .clone()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let _ = writeln!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        path.join(" ")
    );
    for ((x, y), (_, value)) in places.zip(points) {
        let _ = writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"><title>{}</title></circle>",
            number(*value)
        );
    }
}

fn rule(out: &mut String, from: (f64, f64), to: (f64, f64), colour: &str) {
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, size: &str, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"#333333\">{content}</text>"
    );
}

/// Whole numbers with their thousands apart, others with three digits.
fn number(value: f64) -> String {
    if value.fract() != 0.0 && value < 100.0 {
        let text = format!("{value:.3}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(lines: Vec<(String, Vec<(f64, f64)>)>) -> String {
        Picture {
            title: "a < b & c",
            across: "x",
            up: "y",
            lines,
        }
        .svg()
    }

    #[test]
    fn ends_lie_on_the_edges() {
        let svg = picture(vec![("ours".into(), vec![(1.0, 0.0), (100.0, 8.0)])]);
        let (right, base) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let path = format!("points=\"{LEFT:.1},{base:.1} {right:.1},{TOP:.1}\"");
        assert!(svg.contains(&path), "{svg}");
        assert!(svg.contains("a &lt; b &amp; c"), "{svg}");
    }

    #[test]
    fn no_and_single_points_are_drawn() {
        for lines in [vec![], vec![("ours".into(), vec![(7.0, 0.0)])]] {
            let svg = picture(lines);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert!(svg.ends_with("</svg>\n"));
        }
    }

    #[test]
    fn numbers_are_short() {
        let check = |value, expected| assert_eq!(number(value), expected);
        check(0.0, "0");
        check(0.25, "0.25");
        check(1_000_000.0, "1 000 000");
        check(100.0, "100");
        assert_eq!(round_up(0.65), 0.8);
        assert_eq!(round_up(1.0), 1.0);
        assert_eq!(round_up(9.1), 10.0);
    }
}
