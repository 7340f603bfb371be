//go:build !gpu

package main

func main() {} // the test builds the program with the tag
