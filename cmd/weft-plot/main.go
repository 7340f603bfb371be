// Command weft-plot draws the curves of a training: the history that train.Fit has written to a
// folder, as a PNG, SVG or PDF file.
//
//	weft-plot /tmp/model                          # writes /tmp/model/history.png
//	weft-plot /tmp/model --out=loss.svg --values=loss,val_loss
//
// It is a program of its own because its plotting library would make a task larger.
package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weft-ml/weft/train"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "weft-plot:", err)
		os.Exit(1)
	}
}

func run(args []string, out, help io.Writer) error {
	flags := pflag.NewFlagSet("weft-plot", pflag.ContinueOnError)
	flags.SetOutput(help)
	flags.Usage = func() { fmt.Fprintf(help, "Usage: weft-plot DIR [flags]\n\n%s", flags.FlagUsages()) }
	file := flags.String("out", "", "file to write: .png, .svg or .pdf; history.png in the folder if empty")
	values := flags.String("values", "", "values to draw, such as loss,val_loss; all if empty")
	logarithmic := flags.Bool("log", false, "draw values that are all positive on a logarithmic scale")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("%d arguments; give the folder that train.Fit has written to (FitOptions.Dir)", flags.NArg())
	}
	dir := flags.Arg(0)
	h, err := train.ReadHistory(dir)
	if err != nil {
		return err
	}
	names := h.Names()
	if *values != "" {
		names = strings.Split(*values, ",")
	}
	if *file == "" {
		*file = filepath.Join(dir, "history.png")
	}
	if err := drawHistory(h, names, *file, *logarithmic); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, *file)
	return err
}

// A chart has the curves of values of one kind: a value and the same over the validation data.
type chart struct {
	title string
	names []string
}

// charts groups names of values by kind, the loss first.
func charts(names []string) []chart {
	var out []chart
	for _, name := range names {
		base := strings.TrimPrefix(name, "val_")
		i := slices.IndexFunc(out, func(c chart) bool { return c.title == base })
		if i < 0 {
			i = len(out)
			out = append(out, chart{title: base})
		}
		out[i].names = append(out[i].names, name)
	}
	slices.SortStableFunc(out, func(a, b chart) int {
		switch {
		case a.title == b.title:
			return 0
		case a.title == "loss":
			return -1
		case b.title == "loss":
			return 1
		}
		return strings.Compare(a.title, b.title)
	})
	return out
}

// Sizes of a chart.
const (
	width  = 16 * vg.Centimeter
	height = 8 * vg.Centimeter
	// legendShare is the part of a chart above the curves, where the legend is.
	legendShare = 0.2
)

// drawHistory writes the charts, one below the other.
func drawHistory(h *train.History, names []string, path string, logarithmic bool) error {
	if len(h.Epochs) == 0 {
		return errors.New("the history has no epochs")
	}
	var rows [][]*plot.Plot
	for _, c := range charts(names) {
		p, err := drawChart(h, c, logarithmic)
		if err != nil {
			return err
		}
		rows = append(rows, []*plot.Plot{p})
	}
	format := strings.TrimPrefix(filepath.Ext(path), ".")
	canvas, err := draw.NewFormattedCanvas(width, height*vg.Length(len(rows)), format)
	if err != nil {
		return fmt.Errorf("%s: %w; name it .png, .svg or .pdf", path, err)
	}
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadTop: vg.Millimeter, PadBottom: vg.Millimeter, PadLeft: 2 * vg.Millimeter, PadRight: 4 * vg.Millimeter, PadY: 4 * vg.Millimeter}
	for i, row := range plot.Align(rows, tiles, draw.New(canvas)) {
		rows[i][0].Draw(row[0])
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(f)
	return errors.Join(err, f.Close())
}

func drawChart(h *train.History, c chart, logarithmic bool) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = c.title
	p.X.Label.Text = "epoch"
	p.Add(plotter.NewGrid())
	for i, name := range c.names {
		var points plotter.XYs
		for _, e := range h.Epochs {
			if v, ok := e.Values[name]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
				points = append(points, plotter.XY{X: float64(e.Epoch), Y: v})
			}
		}
		if len(points) == 0 {
			return nil, fmt.Errorf("there is no value %q; there are %s", name, strings.Join(h.Names(), ", "))
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = plotutil.Color(i), vg.Points(1.5)
		if strings.HasPrefix(name, "val_") {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
		}
		p.Add(line)
		p.Legend.Add(name, line)
	}
	p.Legend.Top, p.Legend.Padding = true, vg.Millimeter
	if logarithmic && p.Y.Min > 0 {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, legendShare)
	} else {
		p.Y.Max += legendShare * (p.Y.Max - p.Y.Min)
	}
	return p, nil
}
