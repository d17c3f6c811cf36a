// Answers for each row of standard input: id, seconds since 1970 (or nothing) and text, separated by tabs. Prints id,
// kept id, similarity and method of each duplicate.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"lookalike.example/lookalike"
)

func main() {
	log.SetFlags(0)
	stream, err := lookalike.NewStream(os.Args[1])
	if err != nil {
		log.Fatal("error: ", err)
	}
	defer stream.Close()
	rows := bufio.NewScanner(os.Stdin)
	rows.Buffer(nil, 1<<30)
	for rows.Scan() {
		fields := bytes.SplitN(rows.Bytes(), []byte("\t"), 3)
		var at time.Time
		if seconds, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
			at = time.Unix(seconds, 0)
		}
		verdict, err := stream.Insert(fields[2], fields[0], at)
		if err != nil {
			log.Fatal("error: ", err)
		}
		if verdict.IsDuplicate {
			similarity := strconv.FormatFloat(verdict.Similarity, 'g', -1, 64)
			fmt.Printf("%s\t%s\t%s\t%s\n", fields[0], verdict.Of, similarity, verdict.Method)
		}
	}
	if err := rows.Err(); err != nil {
		log.Fatal("error: ", err)
	}
}
