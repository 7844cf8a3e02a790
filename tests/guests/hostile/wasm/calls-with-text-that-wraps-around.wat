;; Asks with a pointer from the end of its memory to the start.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $get-string (local.get $observed) (i32.const -2) (i32.const 4) (i32.const 700))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
