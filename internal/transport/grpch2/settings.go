package grpch2

import "encoding/binary"

// settingID identifies a setting; see RFC 9113, section 6.5.2.
type settingID uint16

const (
	settingTableSize settingID = iota + 1
	settingEnablePush
	settingMaxStreams
	settingInitialWindow
	settingMaxFrame
	settingMaxHeaderList
)

// settingTrueBinary is the setting GRPC_ALLOW_TRUE_BINARY_METADATA of gRPC's C core, which sends it
// in all releases that TensorFlow 1.4 and later have. Other libraries do not have it.
const settingTrueBinary settingID = 0xfe03

// Limits that are announced to peers. A stream carries one message, which is read as it arrives, so
// flow control of streams has nothing to protect and the window is as large as possible. The frame
// size bounds how long other frames wait behind one frame of a large message.
const (
	ownMaxFrame      = 1 << 20
	ownWindow        = maxWindow
	ownMaxHeaderList = 64 << 10
	ownMaxStreams    = 1 << 16
)

func appendSetting(b []byte, id settingID, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(id)), value)
}

// appendOwnSettings appends the frames that start our side of a connection. A server announces how
// many streams the client may have.
func appendOwnSettings(b []byte, server bool, streams int) []byte {
	settings := appendSetting(nil, settingInitialWindow, ownWindow)
	settings = appendSetting(settings, settingMaxFrame, ownMaxFrame)
	settings = appendSetting(settings, settingMaxHeaderList, ownMaxHeaderList)
	if server {
		settings = appendSetting(settings, settingMaxStreams, uint32(streams))
	} else {
		settings = appendSetting(settings, settingEnablePush, 0)
	}
	b = appendFrame(b, frameSettings, 0, 0, settings)
	return appendUint32Frame(b, frameWindowUpdate, 0, ownWindow-firstWindow)
}

// settings holds the settings of a peer. The defaults are those of RFC 9113.
type settings struct {
	window     int64  // initial window of a stream, in bytes
	frame      int    // largest payload of a frame, in bytes
	streams    uint32 // largest number of concurrent streams
	headerList uint32 // largest header list, in bytes
	weft       bool   // the peer is a server of Weft
	coreGRPC   bool   // the peer is gRPC's C core
}

func defaultSettings() settings {
	return settings{window: firstWindow, frame: minFrame, streams: 1<<32 - 1, headerList: 1<<32 - 1}
}

// update applies the payload of a SETTINGS frame.
func (s *settings) update(payload []byte) error {
	if len(payload)%6 != 0 {
		return sizeError("a SETTINGS frame is not made of whole settings")
	}
	for ; len(payload) > 0; payload = payload[6:] {
		value := binary.BigEndian.Uint32(payload[2:])
		switch settingID(binary.BigEndian.Uint16(payload)) {
		case settingEnablePush:
			if value > 1 {
				return protocolError("ENABLE_PUSH is neither 0 nor 1")
			}
		case settingMaxStreams:
			s.streams = value
		case settingInitialWindow:
			if value > maxWindow {
				return &connError{codeFlowControl, "INITIAL_WINDOW_SIZE is too large"}
			}
			s.window = int64(value)
		case settingMaxFrame:
			if value < minFrame || value > maxFrame {
				return protocolError("MAX_FRAME_SIZE is out of range")
			}
			s.frame = int(value)
		case settingMaxHeaderList:
			s.headerList = value
		case settingWeft:
			s.weft = value == 1
		case settingTrueBinary:
			s.coreGRPC = true
		case settingTableSize: // limits HPACK's dynamic table, which is not used for writing
		}
	}
	return nil
}
