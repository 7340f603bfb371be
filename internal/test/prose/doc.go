// Package prose checks the language of comments, help texts and pages: the line length, and words
// and constructs that a reader would have to decode. CONTRIBUTING.md has the style sheet that it
// enforces a part of.
package prose
