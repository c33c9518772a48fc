#!/usr/bin/env python3
"""Records a command in a terminal of so many columns, and writes the recording as an SVG: moving, or its last screen.

    docs/pictures/record.py [--columns 100] [--rows 24] [--still] [--shown TEXT] FILE.svg COMMAND [ARGUMENT...]

The picture is made of what the command really wrote. --shown is the command line to show instead of the real one, such as
without a path. Wants pyte, a terminal in memory (pip install pyte). Waits longer than two seconds are cut to two.
"""

import argparse
import fcntl
import html
import os
import pty
import select
import struct
import termios
import time

import pyte

CELL, LINE, MARGIN = 8.4, 18, 14
MOST_FRAMES, LONGEST_WAIT, LAST_SECONDS = 60, 2.0, 6.0
BACKGROUND, TEXT = "#16181d", "#d7dae0"
COLORS = {
    "red": "#ff6b68", "green": "#7ec16e", "brown": "#e5c06a", "blue": "#6ca8ee", "magenta": "#c792ea", "cyan": "#5fc9c9",
    "white": "#f2f4f8", "black": "#5c6370", "brightblack": "#5c6370",
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rows", type=int, default=24)
    parser.add_argument("--still", action="store_true", help="only the last screen")
    parser.add_argument("--shown")
    parser.add_argument("file")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    shown = arguments.shown or " ".join(arguments.command)
    frames = record(arguments.command, shown, arguments.columns, arguments.rows)
    if arguments.still:
        frames = [(0, frames[-1][1])]
    with open(arguments.file, "w", encoding="utf-8") as picture:
        picture.write(svg(frames, arguments.columns, shown))


def record(command, shown, columns, rows):
    """Runs the command, and returns screens with the seconds at which they were first seen."""
    screen = pyte.Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    stream.feed(f"\x1b[32m$\x1b[0m {shown}\r\n".encode())
    frames = [(0.0, lines_of(screen))]
    process, terminal = pty.fork()
    if process == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
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


def svg(frames, columns, title):
    rows = max(len(lines) for _, lines in frames)
    width, height = round(columns * CELL + 2 * MARGIN), round(rows * LINE + 2 * MARGIN)
    seconds = frames[-1][0] + LAST_SECONDS
    styles, groups = [], []
    for number, (at, lines) in enumerate(frames):
        until = frames[number + 1][0] if number + 1 < len(frames) else seconds
        if len(frames) > 1:
            begin, end = 100 * at / seconds, 100 * until / seconds
            hidden = f"0%,{max(begin - 0.001, 0):.3f}%{{visibility:hidden}}" if number else ""
            after = f"{end:.3f}%,100%{{visibility:hidden}}" if number + 1 < len(frames) else "100%{visibility:visible}"
            styles.append(f"@keyframes f{number}{{{hidden}{begin:.3f}%,{max(end - 0.001, 0):.3f}%{{visibility:visible}}{after}}}")
            styles.append(f"#f{number}{{animation:f{number} {seconds:.1f}s step-end infinite}}")
        groups.append(f'<g id="f{number}">{"".join(text_of(row, runs) for row, runs in enumerate(lines))}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
        f"<title>{html.escape(title)}</title><style>"
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}"
        f'{"".join(styles)}</style><rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>{"".join(groups)}</svg>\n'
    )


def text_of(row, runs):
    if not runs:
        return ""
    spans, column = [], 0
    for (color, bold), text in runs:
        fill = COLORS.get(color, f"#{color}" if len(color) == 6 and color not in COLORS and color != "default" else TEXT)
        weight = ' font-weight="bold"' if bold else ""
        if text.strip():
            x = MARGIN + column * CELL
            spans.append(f'<tspan x="{x:.1f}" fill="{fill}"{weight} textLength="{len(text) * CELL:.1f}">{html.escape(text)}</tspan>')
        column += len(text)
    return f'<text y="{MARGIN + 13 + row * LINE}">{"".join(spans)}</text>'


if __name__ == "__main__":
    main()
