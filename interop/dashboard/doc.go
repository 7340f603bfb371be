// Package dashboard tests the dashboard of a task in Chromium, against clusters that train, that
// hang, and that have lost a task. It is a module of its own, so that the module of Weft does not
// depend on the driver of the browser.
package dashboard
