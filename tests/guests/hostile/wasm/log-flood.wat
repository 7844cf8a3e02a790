;; Writes ten thousand lines.
;; kind: health
;; answers
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (local $lines i32)
      (local.set $lines (i32.const 10000))
      (loop
        (call $write (i32.const 1) (i32.const 128) (i32.const 4))
        (br_if 0 (local.tee $lines (i32.sub (local.get $lines) (i32.const 1)))))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
