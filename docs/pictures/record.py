#!/usr/bin/env python3
"""Records a command in a terminal of so many columns, and writes the recording as an SVG: moving, or its last screen.

    docs/pictures/record.py [--columns 240] [--width 96] [--rows 40] [--still] [--shown TEXT] FILE.svg COMMAND [ARGUMENT...]

The picture is made of what the command really wrote. Lines that are longer than --width are broken between words. --shown is the
command line to show instead of the real one, such as without a path. A viewer that plays no animation, or is asked for less
motion, shows the last screen. Waits longer than two seconds are cut to two. Wants pyte, a terminal in memory (pip install pyte).
"""

import argparse
import fcntl
import html
import itertools
import os
import pty
import select
import struct
import termios
import time

import pyte

CELL, LINE, MARGIN = 8.4, 18, 14
MOST_FRAMES, LONGEST_WAIT, LAST_SECONDS = 40, 2.0, 6.0
BACKGROUND, TEXT = "#16181d", "#d7dae0"
COLORS = {
    "red": "#ff6b68", "green": "#7ec16e", "brown": "#e5c06a", "blue": "#6ca8ee", "magenta": "#c792ea", "cyan": "#5fc9c9",
    "white": "#f2f4f8", "black": "#5c6370", "brightblack": "#5c6370",
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=240, help="of the terminal")
    parser.add_argument("--width", type=int, default=96, help="columns of the picture")
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--still", action="store_true", help="only the last screen")
    parser.add_argument("--shown")
    parser.add_argument("file")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    shown = arguments.shown or " ".join(arguments.command)
    frames = record(arguments.command, shown, arguments.columns, arguments.rows)
    if arguments.still:
        frames = [(0, frames[-1][1])]
    frames = [(at, [part for line in lines for part in folded(line, arguments.width)]) for at, lines in frames]
    with open(arguments.file, "w", encoding="utf-8") as picture:
        picture.write(svg(frames, arguments.width, shown))


def record(command, shown, columns, rows):
    """Runs the command, and returns screens with the seconds at which they were first seen."""
    screen = pyte.Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    stream.feed(f"\x1b[32m$\x1b[0m {shown}\r\n".encode())
    frames = [(0.0, lines_of(screen))]
    process, terminal = pty.fork()
    if process == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    shown_at, now, last = 0.0, 0.6, time.monotonic()
    while True:
        is_readable, _, _ = select.select([terminal], [], [], 30)
        try:
            data = os.read(terminal, 65536) if is_readable else b""
        except OSError:
            data = b""
        if not data:
            break
        at = time.monotonic()
        now += min(at - last, LONGEST_WAIT)
        last = at
        stream.feed(data)
        lines = lines_of(screen)
        if lines != frames[-1][1] and now - shown_at > 0.1:
            frames.append((now, lines))
            shown_at = now
    os.waitpid(process, 0)
    frames.append((now + 0.1, lines_of(screen)))
    step = -(-len(frames) // MOST_FRAMES)
    return frames[::step] + ([frames[-1]] if (len(frames) - 1) % step else [])


def lines_of(screen):
    """Each line as runs of text of one colour and weight."""
    lines = []
    for row in range(screen.lines):
        runs = []
        for column in range(screen.columns):
            cell = screen.buffer[row][column]
            style = (cell.fg, cell.bold)
            if runs and runs[-1][0] == style:
                runs[-1][1] += cell.data
            else:
                runs.append([style, cell.data])
        while runs and not runs[-1][1].strip():
            runs.pop()
        lines.append(tuple((style, text) for style, text in runs))
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)


def folded(line, width):
    """Breaks a line between words, as often as it takes; what follows a break is indented."""
    cells = [(style, character) for style, text in line for character in text]
    while cells and cells[-1][1] == " ":
        cells.pop()
    while len(cells) > width:
        spaces = [at for at in range(width // 2, width + 1) if cells[at][1] == " "]
        at = spaces[-1] if spaces else width
        yield runs_of(cells[:at])
        cells = [(None, " ")] * 4 + cells[at + bool(spaces) :]
    yield runs_of(cells)


def runs_of(cells):
    return [(style, "".join(cell[1] for cell in run)) for style, run in itertools.groupby(cells, lambda cell: cell[0])]


def svg(frames, columns, title):
    rows = max(len(lines) for _, lines in frames)
    width, height = round(columns * CELL + 2 * MARGIN), round(rows * LINE + 2 * MARGIN)
    seconds = frames[-1][0] + LAST_SECONDS
    styles, groups = [], []
    for number, (at, lines) in enumerate(frames):
        is_last = number + 1 == len(frames)
        if len(frames) > 1:
            begin, end = 100 * at / seconds, 100 if is_last else 100 * frames[number + 1][0] / seconds
            shown = f"{begin:.3f}%{{visibility:visible}}" + ("" if is_last else f"{end:.3f}%,100%{{visibility:hidden}}")
            styles.append(f"@keyframes f{number}{{0%{{visibility:hidden}}{shown}}}" if number else f"@keyframes f0{{{shown}}}")
            styles.append(f"#f{number}{{animation:f{number} {seconds:.1f}s step-end infinite}}")
        # Without an animation, only the last screen is visible.
        hidden = "" if is_last else ' visibility="hidden"'
        groups.append(f'<g id="f{number}"{hidden}>{"".join(text_of(row, runs) for row, runs in enumerate(lines))}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" xml:space="preserve">'
        f"<title>{html.escape(title)}</title><style>"
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}"
        f'@media (prefers-reduced-motion:no-preference){{{"".join(styles)}}}</style>'
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>{"".join(groups)}</svg>\n'
    )


def text_of(row, runs):
    if not runs:
        return ""
    spans, column = [], 0
    for style, text in runs:
        color, bold = style or ("default", False)
        fill = COLORS.get(color, f"#{color}" if len(color) == 6 and color not in COLORS and color != "default" else TEXT)
        weight = ' font-weight="bold"' if bold else ""
        if text.strip():
            x = MARGIN + column * CELL
            spans.append(f'<tspan x="{x:.1f}" fill="{fill}"{weight} textLength="{len(text) * CELL:.1f}">{html.escape(text)}</tspan>')
        column += len(text)
    return f'<text y="{MARGIN + 13 + row * LINE}">{"".join(spans)}</text>'


if __name__ == "__main__":
    main()
