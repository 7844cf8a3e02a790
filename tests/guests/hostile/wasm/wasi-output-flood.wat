;; Writes ten thousand lines to standard output.
;; kind: health
;; answers
(component
  {{before}}
  (import "wasi:io/error@0.2.0" (instance $errors (export "error" (type (sub resource)))))
  (alias export $errors "error" (type $io-error))
  (import "wasi:io/streams@0.2.0" (instance $streams
    (export "output-stream" (type $stream (sub resource)))
    (alias outer 1 $io-error (type $failure'))
    (export "error" (type $failure (eq $failure')))
    (type $stream-error' (variant (case "last-operation-failed" (own $failure)) (case "closed")))
    (export "stream-error" (type $stream-error (eq $stream-error')))
    (export "[method]output-stream.blocking-write-and-flush"
      (func (param "self" (borrow $stream)) (param "contents" (list u8)) (result (result (error $stream-error)))))))
  (alias export $streams "output-stream" (type $stream))
  (import "wasi:cli/stdout@0.2.0" (instance $stdout
    (alias outer 1 $stream (type $stream'))
    (export "output-stream" (type $output (eq $stream')))
    (export "get-stdout" (func (result (own $output))))))
  (core func $stdout (canon lower (func $stdout "get-stdout")))
  (core func $print (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
    (memory (core memory $heap "memory"))))
  (core module $code
    {{core}}
    (import "wasi" "stdout" (func $stdout (result i32)))
    (import "wasi" "print" (func $print (param i32 i32 i32 i32)))
    (data (i32.const 600) "line\n")
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (local $lines i32) (local $stdout i32)
      (local.set $stdout (call $stdout))
      (local.set $lines (i32.const 10000))
      (loop
        (call $print (local.get $stdout) (i32.const 600) (i32.const 5) (i32.const 700))
        (br_if 0 (local.tee $lines (i32.sub (local.get $lines) (i32.const 1)))))
      (call $drop (local.get $observed))
      (i32.const 512)))
  (core instance $code (instantiate $code
    (with "heap" (instance $heap))
    (with "host" (instance
      (export "drop" (func $drop)) (export "get-string" (func $get-string)) (export "json" (func $json))
      (export "write" (func $write))))
    (with "wasi" (instance (export "stdout" (func $stdout)) (export "print" (func $print))))))
  {{types}}
  {{plugin}}
  {{health}})
